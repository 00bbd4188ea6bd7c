"""What people write who come from other libraries: each error names what to write, and a notebook shows tables."""

import copy
import pickle
from html.parser import HTMLParser

import pytest

from ragstone import (
    ContextRelevancy,
    Criterion,
    Faithfulness,
    ResponseRelevancy,
    Score,
    Unscored,
    Verdict,
    compare,
    evaluate,
)
from ragstone.testing import FakeLLM

ROW = {"question": "Who wrote Emma?", "contexts": "Jane Austen did. It rains.", "answer": "Jane Austen."}
METRIC = ContextRelevancy(FakeLLM({"ids": [1]}))
REPORT = evaluate([ROW, {**ROW, "contexts": None}], METRIC)
OUTCOME = REPORT[0].outcome


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (REPORT, "mean", 'write report["METRIC"].mean'),
        (REPORT, "scores", "write report.to_pandas()"),
        (REPORT, "faithfulness", 'write report["faithfulness"].mean'),
        (REPORT, "to_html", 'write report.save("report.html")'),
        (REPORT["context_relevancy"], "score", 'write report["METRIC"].mean'),
        (OUTCOME, "score", "write outcome.value"),
        (OUTCOME, "detail", "write outcome.reason"),
        (REPORT[1].outcome, "verdicts", "only a Score has it"),
        (METRIC, "measure", "write outcome = metric.score(row), then outcome.value, outcome.reason"),
    ],
)
def test_an_attribute_of_another_library_is_answered_with_ours(owner, name, said):
    with pytest.raises(AttributeError, match="has no attribute") as caught:
        getattr(owner, name)
    assert said in str(caught.value)
    assert not hasattr(owner, "_private")


@pytest.mark.parametrize(
    "use", [float, lambda it: it > 0.5, lambda it: it <= 0.5, lambda it: it["score"], lambda it: f"{it:.2f}"]
)
def test_who_takes_an_outcome_or_a_mean_for_a_number_reads_where_it_is(use):
    for owner, said in ((OUTCOME, "write .value"), (REPORT["context_relevancy"], "write .mean")):
        with pytest.raises(TypeError, match=said):
            use(owner)
        assert f"{owner}" == str(owner)


def test_an_error_of_a_propertys_own_stays_and_copies_are_equal():
    class Mine(ContextRelevancy):
        @property
        def worse(self):
            return self.llm.nothing

    with pytest.raises(AttributeError, match="'FakeLLM' object has no attribute 'nothing'"):
        _ = Mine(FakeLLM("")).worse
    assert pickle.loads(pickle.dumps(OUTCOME)) == copy.deepcopy(OUTCOME) == OUTCOME
    assert copy.deepcopy(METRIC).name == METRIC.name


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: Faithfulness(temperature=0),
            "temperature: Faithfulness has no such option; write it in the judge's name",
        ),
        (lambda: Faithfulness(model="gpt"), "model: Faithfulness has no such option; write llm="),
        (
            lambda: ResponseRelevancy(embeddings="x"),
            "embeddings: ResponseRelevancy has no such option; write embedder=",
        ),
        (lambda: Faithfulness(treshold=0.5), "treshold: Faithfulness has no such option; write threshold="),
        (lambda: Criterion(criteria="Is it?"), "criteria: Criterion has no such option; write question="),
        (lambda: Faithfulness(colour=1), "`help(Faithfulness)` lists those that there are"),
        (lambda: Faithfulness(None, 0.5), "Faithfulness: too many positional arguments; the judge comes first"),
        (
            lambda: evaluate([ROW], METRIC, temperature=0),
            "temperature: evaluate has no such option; write it in the judge",
        ),
        (lambda: evaluate(dataset=[ROW], metrics=[METRIC]), "dataset: evaluate has no such option; write samples"),
        (
            lambda: evaluate([ROW], METRIC, max_calls=3),
            "max_calls: evaluate has no such option; write limits=Limits(max_c",
        ),
    ],
)
def test_an_option_of_another_library_is_answered_with_ours(call, said):
    with pytest.raises(TypeError) as caught:
        call()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("faithfulness", "Faithfulness"), ("AnswerRelevancyMetric", "ResponseRelevancy"), ("LLMTestCase", "Sample")],
)
def test_an_import_of_another_library_is_answered_with_ours(name, meant):
    with pytest.raises(ImportError, match=f"ragstone has no '{name}'; write `from ragstone import {meant}`"):
        exec(f"from ragstone import {name}")
    with pytest.raises(ImportError, match="cannot import name 'Colour'"):
        exec("from ragstone import Colour")


def test_a_metric_of_ones_own_has_an_init_of_its_own():
    class Mine(ContextRelevancy):
        def __init__(self, llm, colour, **others):
            super().__init__(llm=llm, **others)
            vars(self).update(colour=colour)

    assert Mine(FakeLLM(""), "red").colour == Mine(FakeLLM(""), colour="red", threshold=0.5).colour == "red"


class Cells(HTMLParser):
    """The cells of a page's tables, with their styles, and the tags of the page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.cells, self._style = set(), [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._style = dict(attrs).get("style", "") if tag in ("td", "th") else None

    def handle_data(self, data):
        if self._style is not None:
            self.cells.append((data, "214,64,52" in self._style, "46,150,88" in self._style))


def test_a_notebook_shows_tables_and_marks_sentences_by_colour_and_word():
    verdicts = [
        Verdict(id="1", kind="claim", text="<b>She</b>", verdict="supported", probability=0.9),
        Verdict(id="2", kind="claim", text="It rains.", verdict="unsupported", probability=0.1, lowers_score=True),
    ]
    score = Score(metric="demo", value=0.5, reason="1 of 2.", version="1", verdicts=verdicts)
    cells = Cells(score._repr_html_()).cells
    assert [cell for cell in cells if cell[0] in ("supported", "<b>She</b>")] == [
        ("supported", False, True),
        ("<b>She</b>", False, True),
    ]
    assert ("unsupported", True, False) in cells
    failed = Unscored(metric="demo", reason="timeout", detail="<script>", version="1")
    for shown in (score, failed, REPORT, REPORT["context_relevancy"], compare(REPORT, REPORT)):
        page = Cells(shown._repr_html_())
        assert page.tags <= {"strong", "table", "tr", "th", "td", "div"}
        assert "table" in page.tags or shown is failed
    assert ("context_relevancy", False, False) in Cells(REPORT["context_relevancy"]._repr_html_()).cells
