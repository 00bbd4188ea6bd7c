"""What people are asked of each metric, and the labels that a page gives: which of them are refused, and why."""

import itertools
import json
from dataclasses import asdict, dataclass

import pytest

from ragstone import ContextRelevancy, Criterion, LLMReply, Sample, evaluate
from ragstone.judge_names import NullJudge
from ragstone.labels.drawing import draw_samples
from ragstone.labels.label_file import items_of, read_labels
from ragstone.metrics.names import make_metric, metric_class, metric_names
from ragstone.report import MetricInfo, Report
from ragstone.testing import FakeEmbedder, FakeLLM

from ..report.reports import data_of  # noqa: TID252
from ..support.command import command  # noqa: TID252


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
@pytest.mark.parametrize("name", [*(name for name in metric_names() if metric_class(name).needs_llm), "criterion"])
@pytest.mark.parametrize("pick", [0, -1])
def test_people_choose_from_the_words_that_the_judge_has(name, asking, pick):
    # A question that the original does not answer with yes is no question of coverage.
    judge = FakeLLM(answering(lambda words: words[0 if "cannot_tell" in words else pick]), asking=asking)
    embedder = FakeEmbedder() if name == "response_relevancy" else None
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
    assert bool(items) == (name != "response_relevancy")
    for kind, verdict in items:
        assert verdict.verdict in kind.choices
        assert (kind.origin == "text") <= bool(verdict.evidence)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "results.jsonl"
    metric = ContextRelevancy(llm=FakeLLM({"ids": [1]}))
    samples = [Sample(user_input=f"Who did {i}?", retrieved_contexts=[f"Ann did {i}. Bob sat."]) for i in range(3)]
    evaluate(samples, [metric], progress=False).to_json(path)
    return path


@pytest.fixture(scope="module")
def labels(results):
    """What the page's download holds where each sentence is found needed."""
    return [
        {"ragstone_label": 1, **entry["of"], **item, "answer": "relevant", "draw": entry["draw"]}
        for entry in data_of(draw_samples(Report.load(results)).page())["samples"]
        for item in [{name: each[name] for name in ("kind", "item", "text")} for each in entry["items"]]
    ]


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
        ({"draw": {"chance": 0.0}}, "draw[chance]: Input should be greater than 0"),
        (None, "sentence 1 has a label already"),
    ],
)
def test_a_label_that_cannot_be_used_is_named_and_nothing_is_written(results, labels, tmp_path, change, message):
    lines = [labels[0] | change, *labels[1:]] if change else [*labels, labels[0]]
    file, page = tmp_path / "labels.jsonl", tmp_path / "page.html"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = command("correct", results, "--labels", file, "--page", page)
    assert (done.exit_code, page.exists()) == (2, False)
    assert message in done.stderr
    assert f"line {1 if change else len(lines)}: " in done.stderr
    assert "1 label cannot be used" in done.stderr


def test_a_score_that_the_page_wrote_without_a_point_is_one(labels, tmp_path):
    whole = labels[0] | {"kind": "score", "item": None, "text": None, "answer": 1}
    (tmp_path / "labels.jsonl").write_text(json.dumps(whole))
    ((_, label),) = read_labels(tmp_path / "labels.jsonl")
    assert label.answer == 1.0


def test_what_the_results_do_not_say_is_known_of_ragstones_own_metrics():
    kinds = make_metric("faithfulness", {}, NullJudge(asking="one_by_one")).item_kinds
    found = evaluate([Sample(retrieved_contexts=["A."], response="A.")], ["faithfulness"], progress=False,
                     llm=FakeLLM(answering(lambda words: words[0]), asking="one_by_one"))  # fmt: skip
    assert MetricInfo.from_record(next(iter(found.results()))).items == kinds


def test_keys_among_options_stay_out_of_results():
    @dataclass(frozen=True, kw_only=True)
    class Own(ContextRelevancy):
        api_key: str = "sk-secret"

    head = json.dumps(asdict(MetricInfo.of(Own(llm=FakeLLM(answering(max))))))
    assert "granularity" in head
    assert "secret" not in head
