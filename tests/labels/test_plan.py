"""How many labels a number takes: the formula against what the estimators then do."""

import math

import numpy as np
import pytest
from click.testing import CliRunner

from ragstone.cli.main import cli
from ragstone.labels import corrected_mean
from ragstone.labels.plan import Spread
from ragstone.report.corrections import ByLabels
from ragstone.report.statistics import Estimate as Mean

from .population import labelled, made

pytest.importorskip("scipy")


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_the_planned_labels_give_the_planned_width(rho: float) -> None:
    rng = np.random.default_rng(5)
    judge = rng.random(2_000)
    people = np.clip(0.5 + rho * (judge - 0.5) + math.sqrt(1 - rho**2) * (rng.random(2_000) - 0.5), 0, 1)
    spread = Spread(float(people.std()), float(np.corrcoef(people, judge)[0, 1]) if rho else 0.0, 2_000)
    n = spread.labels_for(0.08)
    assert n is not None
    estimate = corrected_mean(people[:n], judge[:n], judge[n:])
    assert estimate.high - estimate.low == pytest.approx(0.08, rel=0.08)
    assert spread.width(n) <= 0.08 < spread.width(n - 1)


def test_a_pilot_says_what_its_labels_were_worth() -> None:
    rng = np.random.default_rng(5)
    judge = rng.random(1_000)
    people = np.clip(judge + rng.normal(0, 0.2, 1_000), 0, 1)
    estimate = corrected_mean(people[:80], judge[:80], judge[80:])
    half = 1.99 * people[:80].std(ddof=1) / math.sqrt(80)
    mean = float(people[:80].mean())
    spread = Spread.of(ByLabels(80, people=Mean(80, mean, mean - half, mean + half), corrected=estimate), 1_000)
    assert spread is not None
    assert spread.sd == pytest.approx(people.std(), rel=0.15)
    assert spread.rho == pytest.approx(np.corrcoef(people, judge)[0, 1], abs=0.08)
    assert Spread.of(ByLabels(12), 1_000) is None
    few = Spread.of(ByLabels(80, people=Mean(80, mean, mean - half, mean + half), corrected=estimate), 160)
    assert few is not None
    assert few.rho > spread.rho + 0.05  # half of the samples have labels, so a judge had less to add


def test_no_number_of_labels_is_enough() -> None:
    assert Spread(0.5, 0.0, 90).labels_for(0.05) is None
    assert Spread(0.5, 0.0, 12).labels_for(0.9) is None  # fewer samples than labels at least
    assert Spread(0.0).labels_for(0.05) == 20


def test_pairs_are_seen_in_80_of_100_comparisons() -> None:
    n = Spread(0.5).pairs_for(0.1)
    assert n is not None
    assert n == pytest.approx(((1.96 + 0.8416) * 0.5 / 0.1) ** 2, rel=0.02)


def test_the_command_with_and_without_a_pilot(tmp_path) -> None:
    report, truth = made()
    results = tmp_path / "results.jsonl"
    report.to_json(results)
    ids = [f"q{i}" for i in range(0, 300, 5)]
    pilot = labelled(tmp_path / "pilot.jsonl", report, truth, ids)

    def run(*arguments: object) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["plan", *map(str, arguments)])
        return done.exit_code, done.output

    status, text = run("--width", 0.1)
    assert (status, text) == (
        0,
        "an interval 0.1 wide takes 387 labels (standard deviation 0.50, correlation with the judge 0.00, assumed)\n",
    )
    status, text = run("--width", 0.1, "--agreement", 0.8, "--samples", 2000)
    assert (status, "takes 161 labels" in text) == (0, True)
    status, text = run(results, "--width", 0.1, "--labels", pilot)
    assert (status, text.startswith("demo: an interval 0.1 wide takes ")) == (0, True)
    assert "300 samples with scores)" in text
    status, text = run("--difference", 0.1)
    assert (status, text.startswith("seeing a difference of 0.1 takes 199 labelled pairs")) == (0, True)
    few = labelled(tmp_path / "few.jsonl", report, truth, ids[:19])
    status, text = run(results, "--width", 0.1, "--labels", few)
    assert (status, "demo: the pilot has fewer than 20 labels" in text) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --width for a mean, or --difference"),
        (("--width", "0.1", "--difference", "0.1"), "give --width for a mean, or --difference"),
        (("--width", "nan"), "Invalid value for '--width'"),
        (("--width", "0"), "Invalid value for '--width'"),
        (("--width", "0.1", "--agreement", "1"), "Invalid value for '--agreement'"),
        ((__file__, "--width", "0.1"), "RESULTS: give none without --labels"),
        (("--labels", __file__, "--width", "0.1"), "RESULTS: give one with --width"),
        ((__file__, "--labels", __file__, "--difference", "0.1"), "RESULTS: give two with --difference"),
        ((__file__, "--labels", __file__, "--width", "0.1", "--samples", "30"), "leave out --agreement and --samples"),
    ],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(cli, ["plan", *arguments])
    assert (done.exit_code, message in done.output) == (2, True)
