"""`ragstone drift`: the same samples judged again, by judges that a test bends."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest
from click.testing import CliRunner

from ragstone import Sample, evaluate
from ragstone.cli.main import cli
from ragstone.labels.drift import drift, load_anchors
from ragstone.labels.label_file import Label, items_of, response_digest, sample_digest, scored
from ragstone.report import Report, compare
from ragstone.report.checks import Drift

from ..report.reports import report  # noqa: TID252 - under importlib mode tests are no package
from .made import relevancy

JUDGES = """
import random, re, threading
from collections import Counter
from dataclasses import dataclass
from ragstone import ContextRelevancy, LLMReply, Metric
from ragstone.testing import FakeLLM

def made(shift=0.0, noise=0.0, asking="one_by_one"):
    asked, lock = Counter(), threading.Lock()
    def reply(request):
        said = re.search(r"p(\\d\\.\\d+)", request.user.rpartition("<sentence")[2])
        with lock:
            asked[request.user] += 1
            draw = random.Random(f"{request.user} {asked[request.user]}")
        p = 0.5 if request.task.endswith("passage") else min(0.99, max(0.01, float(said[1]) + shift + draw.gauss(0, noise)))
        return LLMReply("yes" if p >= 0.5 else "no", 10, 1, {"yes": p, "no": 1 - p})
    return FakeLLM(reply, asking=asking, model="scripted")

def same(): return made(asking="together")  # which suits it now; the anchors were asked about one by one
def strict(): return made(-0.155)
def noisy(): return made(noise=0.3)
def silent(): return FakeLLM(lambda request: "what?", asking="one_by_one", model="silent")

class Mine(ContextRelevancy):
    name, version = "mine", "1"
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "bent_judges.py").write_text(JUDGES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(cli, [str(each) for each in args])


def samples(n):
    chance = random.Random(7)
    for i in range(n):
        text = " ".join(f"Ann {i}.{k} did it p{chance.uniform(0.3, 0.9):.2f}." for k in range(4))
        yield Sample(id=f"q{i}", user_input=f"Who did {i}?", retrieved_contexts=[text])


def label(results, whole=False, skip=0):
    """Label results as a person who needs what the judge finds more likely than 0.6."""
    lines = []
    for i, each in enumerate(scored(results)):
        facts = {
            "id": each.record.sample_id, "sample_digest": sample_digest(each.sample), "judge": each.record.judge,
            "response_digest": response_digest(each.sample), "metric": each.info.name, "version": each.score.version,
        }  # fmt: skip
        if i < skip or whole:
            answer = {"skipped": True} if i < skip else {"answer": 0.5}
            lines.append(Label(**facts, kind="score", **answer))
            continue
        for kind, item in items_of(each.score, each.info.items):
            answer = kind.choices[item.probability < 0.6]
            lines.append(Label(**facts, kind=kind.kind, item=item.id, text=item.text, answer=answer))
    return "".join(f"{line.model_dump_json()}\n" for line in lines)


@pytest.fixture
def anchors(run, tmp_path):
    """Scores and labels n samples by the command, saves them as anchors, and returns their file."""

    def make(n=30, **how):
        results = evaluate(samples(n), [relevancy()], progress=False)
        results.to_json("results.jsonl")
        (tmp_path / "labels.jsonl").write_text(label(results, **how))
        found = run("drift", "results.jsonl", "--labels", "labels.jsonl", "--save", "anchors.jsonl")
        assert found.exit_code == 0, found.output
        return tmp_path / "anchors.jsonl"

    return make


def test_the_same_judge_has_not_drifted(run, anchors):
    found = run("drift", anchors(), "--llm", "bent_judges:same")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[0] == "context_relevancy: 30 samples scored by scripted then, by scripted now"
    assert [line.split()[-1] for line in lines[2:6]] == ["+0.000"] * 4
    assert [line.split("(")[0].strip() for line in lines[3:6]] == ["items, share", "items, kappa", "scores, distance"]
    assert (
        lines[6] == "verdicts that flipped: 0 of 150; between two scorings now: 0 of 150"
    )  # four sentences and the passage
    assert lines[7].startswith("no drift is shown: the mean changed by +0.000 ")


def test_a_stricter_judge_has_drifted(run, anchors):
    results = Report.load(anchors())
    found = run("drift", "anchors.jsonl", "--llm", "bent_judges:strict")
    assert found.exit_code == 1, found.output
    lines = found.stdout.splitlines()
    table = {line.rsplit(maxsplit=3)[0].split("(")[0].strip(): line.split()[-3:] for line in lines[2:6]}
    assert float(table["mean"][0]) == pytest.approx(results.summary()["context_relevancy"].mean, abs=0.001)
    assert float(table["items, share"][1]) > float(table["items, share"][0])  # it is nearer to the person now
    assert float(table["scores, distance"][1]) < float(table["scores, distance"][0])
    flips = [
        f"  {record.sample_id}: sentence {each.text!r}: relevant, now irrelevant"
        for record in results
        for each in record.outcome.verdicts
        if each.kind == "sentence" and 0.5 <= each.probability < 0.655
    ]
    assert lines[7:17] == flips[:10]
    assert lines[6].startswith(f"verdicts that flipped: {len(flips)} of 150; ")
    assert lines[-2].startswith("  and ")
    assert lines[-1].startswith("drift: the mean changed by -0.")


def test_noise_is_no_drift(run, anchors):
    found = run("drift", anchors(60), "--llm", "bent_judges:noisy", "--repeat", "4")
    assert "between two scorings now: 0 of" not in found.stdout
    assert found.exit_code == 0, found.output


def test_few_or_unscored_samples_cannot_tell(run, anchors):
    found = run("drift", anchors(19), "--llm", "bent_judges:strict")
    assert (found.exit_code, "19 samples scored then and now; 20 are needed" in found.stdout) == (3, True)
    found = run("drift", anchors(20), "--llm", "bent_judges:strict")
    assert found.exit_code == 1
    found = run("drift", "anchors.jsonl", "--llm", "bent_judges:silent")
    assert (found.exit_code, "not scored now: 20 judge_unparseable: " in found.stdout) == (3, True)


MOVED = {"pairs": 20, "difference": -0.1, "low": -0.2, "high": -0.01, "noise_error": 0.05}


@pytest.mark.parametrize(
    ("changes", "lost", "status"),
    [
        ({}, 0, 1),
        ({"difference": 0.1, "low": 0.01, "high": 0.2}, 0, 1),
        ({"high": 0.0}, 0, 0),
        ({"high": -1e-12}, 0, 0),  # rounding
        ({"noise_error": 0.06}, 0, 0),
        ({"noise_error": 0.0}, 0, 1),
        ({"pairs": 19}, 0, 3),
        ({"low": None, "high": None}, 0, 3),
        ({}, 50, 1),  # a drift is one, whatever else is not scored
        ({"high": 0.0}, 2, 0),
        ({"high": 0.0}, 3, 3),
    ],
)
def test_what_is_a_drift(changes, lost, status):
    (same,) = compare(report([0.5]), report([0.5])).metrics.values()
    found = Drift(replace(same, **MOVED | changes), Counter({"timeout": lost}), 0, [], (0, 0), [])
    assert found.status == status
    assert found.conclusion.startswith({0: "no drift is shown: ", 1: "drift: ", 3: "cannot tell: "}[status])


def test_one_score_for_the_sample_and_skipped_ones(run, anchors):
    path = anchors(30, whole=True, skip=4)
    assert len(Report.load(path)) == 26
    found = run("drift", path, "--llm", "bent_judges:strict")
    assert "items, share" not in found.stdout
    assert "scores, distance (26)" in found.stdout


def test_samples_without_ids_and_several_draws(run, tmp_path):
    given = [each.model_copy(update={"id": None}) for each in samples(24)]
    results = evaluate(given, [relevancy()], repeat=2, progress=False)
    results.to_json("results.jsonl")
    kept = label(results).splitlines(keepends=True)[8:]  # not the first two samples: rows are no longer from 0
    (tmp_path / "labels.jsonl").write_text("".join(kept))
    (found,) = load_anchors("results.jsonl", "labels.jsonl")
    assert (len(found.labelled), len(found.records)) == (22, 44)
    again = drift(found, relevancy())
    assert (again.change.pairs, again.change.difference, again.items, len(again.flips)) == (22, 0.0, 22 * (4 + 1), 0)


def test_a_metric_of_your_own_is_named(run, tmp_path):
    import bent_judges

    results = evaluate(samples(20), [bent_judges.Mine(llm=bent_judges.made())], progress=False)
    results.to_json("results.jsonl")
    (tmp_path / "labels.jsonl").write_text(label(results))
    given = ("drift", "results.jsonl", "--labels", "labels.jsonl", "--llm", "bent_judges:strict")
    found = run(*given)
    assert (found.exit_code, "name it: --metric module:Class" in found.output) == (2, True)
    found = run(*given, "--metric", "bent_judges:Mine")
    assert found.exit_code == 1, found.output


def edited(path, **changes):
    head, *rest = path.read_text().splitlines()
    head = json.loads(head)
    head["metrics"][0] |= changes
    path.write_text("\n".join([json.dumps(head), *rest]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p.write_text(p.read_text().replace('"version":"', '"version":"9')), "version was '9"),
        (lambda p: edited(p, setup={}), "do not say how it was set up"),
        (lambda p: p.write_text(p.read_text().replace('"version":"', '"version":"1+cal:')), "are calibrated"),
        (lambda p: p.write_text(p.read_text().replace("Ann 3.0", "Eve 3.0")), "its texts are others"),
        (lambda p: p.write_text(p.read_text().replace('"labels": [', '"labels": [7, ')), "were changed"),
        (lambda p: p.write_text(p.read_text().replace('"labels": [', '"labels": [], "old": [')), "has no labels"),
        (lambda p: p.write_text("nothing"), "no results"),
    ],
)
def test_what_is_refused(run, anchors, change, said):
    path = anchors(20)
    change(path)
    if said.startswith("version"):  # what the results say of the metric is of that version too
        path.write_text(path.read_text().replace('"version": "', '"version": "9'))
    elif "calibrated" in said:
        path.write_text(path.read_text().replace('"version": "', '"version": "1+cal:'))
    found = run("drift", path, "--llm", "bent_judges:same")
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr


def test_another_setup_is_refused(run, anchors):
    path = anchors(20)
    setup = json.loads(path.read_text().splitlines()[0])["metrics"][0]["setup"]
    edited(path, setup={**setup, "prompts": "other"})
    found = run("drift", path, "--llm", "bent_judges:same")
    assert (found.exit_code, "context_relevancy: prompts was 'other', is now " in found.stderr) == (2, True)
    edited(path, setup={**setup, "settings": {**setup["settings"], "granularity": "chunk"}})
    found = run("drift", path, "--llm", "bent_judges:same")
    assert found.exit_code == 1, "each chunk is one item for the same judge now: the metric is set up as the file says"


@pytest.mark.parametrize(
    "options", [[], ["--llm", "bent_judges:same", "--save", "x.jsonl"], ["--save", "anchors.jsonl"]]
)
def test_options_that_do_not_go_together(run, anchors, options):
    before = (path := anchors(20)).read_bytes()
    assert run("drift", path, *options).exit_code == 2
    assert path.read_bytes() == before


def test_no_text_is_obeyed_by_the_terminal(run, tmp_path):
    given = [
        each.model_copy(
            update={
                "id": f"q\x1b[31m{i}",
                "retrieved_contexts": [each.retrieved_contexts[0] + " A \x1b]0;x\x07 p0.60."],
            }
        )
        for i, each in enumerate(samples(20))
    ]
    results = evaluate(given, [relevancy()], progress=False)
    results.to_json("results.jsonl")
    (tmp_path / "labels.jsonl").write_text(label(results))
    found = run("drift", "results.jsonl", "--labels", "labels.jsonl", "--llm", "bent_judges:strict")
    assert found.exit_code == 1
    assert r"q\x1b[31m0" in found.stdout
    assert not any(c in found.stdout for c in "\x1b\x07")
