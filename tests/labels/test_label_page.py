"""From results to a page of labels, and from labels to a calibration, with no judge asked again."""

import itertools
import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragstone import ContextRelevancy, Criterion, LLMReply, Sample, evaluate
from ragstone.cli.main import cli
from ragstone.labels import Calibration
from ragstone.labels.choose import choose
from ragstone.labels.label_file import items_of
from ragstone.registry import NullJudge, make_metric, metric_names
from ragstone.report import MetricInfo, Report
from ragstone.testing import FakeEmbedder, FakeLLM

from ..report.reports import data_of  # noqa: TID252
from .made import judge, relevancy

FULL = Path("/dev/full")


def sentences(n=24):
    """Sentences of which the judge says yes with more than 1/2 to nearly all; needed are those above 0.8."""
    chance = random.Random(3)
    for i in range(n):
        ps = [round(chance.uniform(0.45, 0.99), 2) for _ in range(4)]
        ps[0] = 0.93  # one is needed
        yield Sample(user_input=f"Who did {i}?", retrieved_contexts=[" ".join(f"Ann {i} did it p{p}." for p in ps)])


def run(*args):
    return CliRunner().invoke(cli, list(map(str, args)))


def downloaded(data, answer, *, whole=False):
    """Return what the page's download holds where each sample is answered by `answer(item)`."""
    for entry in data["samples"]:
        base = {"ragstone_label": 1, **entry["of"], "verdicts_shown": data["shown"]}
        for item in [{"kind": "score"}] if whole else entry["items"]:
            known = {name: item.get(name) for name in ("kind", "item", "text")}
            yield {**base, **known, "answer": answer(item)}


def written(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def needed(item):
    return "relevant" if float(item["text"].split("p")[-1][:-1]) > 0.8 else "irrelevant"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "results.jsonl"
    evaluate(list(sentences()), [relevancy()], progress=False).to_json(path)
    return path


@pytest.fixture(scope="module")
def labels(results):
    return list(downloaded(data_of(choose(Report.load(results)).page()), needed))


def answering(pick, texts=1):
    """Return a judge that answers any schema, with texts that all differ, as many as are asked for or `texts`."""
    number = itertools.count()

    def made(schema):
        if "enum" in schema:
            return pick(schema["enum"])
        if schema["type"] == "object":
            return {name: made(each) for name, each in schema["properties"].items()}
        if schema["type"] == "array":
            n = 1 if schema["items"].get("type") == "integer" else texts
            return [made(schema["items"]) for _ in range(max(n, schema.get("minItems", 0)))]
        return {"string": f"Text {next(number)}?", "boolean": True, "integer": schema.get("minimum")}[schema["type"]]

    def reply(request):
        if request.choices is None:
            return json.dumps(made(request.schema))
        word = pick(request.choices)
        return LLMReply(word, probabilities={each: float(each == word) for each in request.choices})

    return reply


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("name", [*metric_names(), "criterion"])
@pytest.mark.parametrize("pick", [0, -1])
def test_people_choose_from_the_words_that_the_judge_has(name, asking, pick):
    # A question that the original does not answer with yes is no question of coverage.
    judge = FakeLLM(answering(lambda words: words[0 if "cannot_tell" in words else pick]), asking=asking)
    embedder = FakeEmbedder() if name in ("response_relevancy", "context_relevancy") else None
    metric = (
        Criterion("criterion", "Is it kind?", llm=judge)
        if name == "criterion"
        else make_metric(name, {}, judge, embedder)
    )
    outcome = metric.score(
        Sample(
            user_input="Who?", retrieved_contexts=["Ann did. Bob too."], response="Ann [1]. Bob [1].", reference="Ann."
        )
    )
    items = items_of(outcome, metric.item_kinds)
    assert items
    for kind, verdict in items:
        assert verdict.verdict in ("", *kind.choices)
        assert (kind.origin == "text") <= bool(verdict.evidence)


def test_labels_of_results_calibrate_without_a_judge(results, labels, tmp_path):
    file, out = written(tmp_path / "labels.jsonl", labels), tmp_path / "c.json"
    done = run("calibrate", results, "--labels", file, "--out", out)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].split() == ["out", "of", "fold,", "95", "%", "before", "after", "difference"]
    assert "labels: 96 (sentence) in 24 samples" in done.stdout
    assert "Warning: 24 independent samples are few" in done.stderr
    found = Calibration.load(out)
    first = found.agreement[0]
    assert first.name == "sentence F1"
    assert first.difference.low > 0
    assert (found.judge, found.metric, found.item, found.labels) == ("scripted", "context_relevancy", "sentence", 96)
    assert found.threshold == pytest.approx(found.apply([0.8])[0], abs=0.2)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_loses_the_file_but_not_what_was_found(results, labels, tmp_path):
    done = run("calibrate", results, "--labels", written(tmp_path / "l", labels), "--out", FULL)
    assert done.exit_code == 2
    assert "labels: 96 (sentence) in 24 samples" in done.stdout
    assert "written" not in done.stdout
    assert done.stderr.endswith("Error: --out /dev/full: cannot write: No space left on device\n")


def test_one_score_for_the_sample_calibrates_the_score_of_this_very_setup(results, tmp_path):
    data = data_of(choose(Report.load(results)).page())
    answers = itertools.cycle([0.0, 0.25, 1])
    file, out = written(tmp_path / "l", downloaded(data, lambda _: next(answers), whole=True)), tmp_path / "c.json"
    assert run("calibrate", results, "--labels", file, "--out", out).exit_code == 0
    found = Calibration.load(out)
    assert (found.item, found.labels) == ("score", 24)
    relevancy(calibration=found)
    with pytest.raises(ValueError, match="granularity: made with 'sentence', this has 'chunk'"):
        relevancy(calibration=found, granularity="chunk")


def test_what_is_left_out_or_doubtful_is_said(results, labels, tmp_path):
    first = labels[0]
    skipped = {**first, "kind": "score", "item": None, "text": None, "answer": None, "skipped": True}
    others = [{**each, "verdicts_shown": True} for each in labels if each["id"] != first["id"]]
    whole = {
        **skipped,
        "id": others[0]["id"],
        "sample_digest": others[0]["sample_digest"],
        "answer": 1,
        "skipped": False,
    }
    file = written(tmp_path / "l", [skipped, *others, whole])
    done = run("calibrate", results, "--labels", file, "--out", tmp_path / "c.json")
    assert "1 sample(s) were skipped" in done.stderr
    assert "1 label(s) of another kind than sentence" in done.stderr
    assert "23 sample(s) were labelled with the judge's verdicts in sight" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "q99"}, "the results have no score of it by context_relevancy"),
        ({"metric": "faithfulness"}, "the results have no score of it by faithfulness"),
        ({"sample_digest": "0" * 16}, "its texts are others in the results"),
        ({"version": "1"}, "the label is of version '1'"),
        ({"judge": "other"}, "the label is of judge 'other'"),
        ({"item": "99"}, "the score has no sentence 99"),
        ({"text": "Another."}, "its text is another in the results"),
        ({"answer": "yes"}, "'yes' is not one of relevant, irrelevant"),
        ({"answer": 0.5}, "'0.5' is not one of relevant, irrelevant"),
        ({"answer": None}, "answer: is needed"),
        ({"kind": "score", "item": None, "text": None, "answer": 1.5}, "answer"),
        ({"ragstone_label": 2}, "ragstone_label"),
        ({"id": 3}, "id"),
        (None, "sentence 1 has a label already"),
    ],
)
def test_a_label_that_cannot_be_used_is_named_and_nothing_is_written(results, labels, tmp_path, change, message):
    lines = [labels[0] | change, *labels[1:]] if change else [*labels, labels[0]]
    out = tmp_path / "c.json"
    done = run("calibrate", results, "--labels", written(tmp_path / "l", lines), "--out", out)
    assert (done.exit_code, out.exists()) == (2, False)
    assert message in done.stderr
    assert f"line {1 if change else len(lines)}: " in done.stderr
    assert "1 label(s) cannot be used" in done.stderr


def test_a_sample_that_is_labelled_in_part_is_refused(results, labels, tmp_path):
    done = run("calibrate", results, "--labels", written(tmp_path / "l", labels[1:]), "--out", tmp_path / "c.json")
    assert (done.exit_code, "3 of 4 items have a label" in done.stderr) == (2, True)


def test_what_only_a_score_can_calibrate(tmp_path):
    judge = FakeLLM(answering(lambda words: words[0]))
    samples = [Sample(retrieved_contexts=["Ann did."], response=f"Ann {i}.") for i in range(12)]
    run_of = evaluate(samples, [make_metric("faithfulness", {}, judge)], progress=False)
    run_of.to_json(results := tmp_path / "r.jsonl")
    lines = downloaded(data_of(choose(run_of).page()), lambda _: "supported")
    done = run("calibrate", results, "--labels", written(tmp_path / "l", lines), "--out", tmp_path / "c.json")
    assert (done.exit_code, "of faithfulness only score can be calibrated" in done.stderr) == (2, True)


def test_what_the_results_do_not_say_is_known_of_ragstones_own_metrics():
    kinds = make_metric("faithfulness", {}, NullJudge(asking="one_by_one")).item_kinds
    found = evaluate([Sample(retrieved_contexts=["A."], response="A.")], ["faithfulness"], progress=False,
                     llm=FakeLLM(answering(lambda words: words[0]), asking="one_by_one"))  # fmt: skip
    assert MetricInfo.from_record(next(iter(found.results()))).items == kinds


def test_keys_among_options_stay_out_of_results():
    @dataclass(frozen=True, kw_only=True)
    class Own(ContextRelevancy):
        api_key: str = "sk-secret"

    head = json.dumps(asdict(MetricInfo.of(Own(llm=judge()))))
    assert "granularity" in head
    assert "secret" not in head
