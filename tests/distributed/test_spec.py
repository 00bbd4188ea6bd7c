"""A spec is JSON, checked where it is made, and makes its metrics where it is read."""

import copy
import json
from pathlib import Path

import pytest

from ragstone import ContextRelevancy, Faithfulness
from ragstone.distributed import Spec, SpecError

FULL = {
    "metrics": {"context_relevancy": {"granularity": "chunk", "threshold": 0.5}, "response_relevancy": {}},
    "judge": "people:judge",
    "embedder": "people:embedder",
    "fields": {"response": "output"},
    "repeat": 2,
    "max_concurrency": 10,
    "requests_per_minute": 90,
    "tokens_per_minute": 1000.5,
    "call_timeout": 5,
    "sample_timeout": 6,
    "journal": "/shared/journal",
    "share_replies": False,
}


@pytest.fixture(autouse=True)
def people_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def spec(**more):
    return Spec(**{"metrics": ["context_relevancy"], "judge": "people:judge", **more})


def test_survives_json_and_builds_metrics_over_one_judge():
    given = copy.deepcopy(FULL)
    made = Spec(**given)
    given["metrics"]["context_relevancy"]["granularity"] = "sentence"  # what was handed in may change later
    text = made.to_json()
    assert Spec.from_json(text) == made
    assert Spec.from_json(text).to_json() == text
    assert {name: json.loads(text)[name] for name in FULL} == FULL
    context, response = made.build()
    assert isinstance(context, ContextRelevancy)
    assert (context.granularity, context.threshold, context.llm.model) == ("chunk", 0.5, "scripted")
    assert context.llm is response.llm
    assert response.embedder.model == "fake-8"
    assert spec(metrics=["people:Renamed"]).build()[0].name == "renamed"


def test_a_judge_that_gives_probabilities_is_scored_by_them_at_the_worker():
    for scoring in ("auto", "expected"):
        (metric,) = spec(metrics={"faithfulness": {"scoring": scoring}}, judge="people:graded").build()
        assert metric.version == f"{Faithfulness.version}+expected"


def test_judge_by_url_asks_the_server_for_its_model_and_embeds_too(openai_server):
    server = openai_server(lambda body: "yes", models=["the-model"])
    assert spec(judge=server.url).build()[0].llm.model == "the-model"
    metric = spec(metrics=["response_relevancy"], judge="m@http://127.0.0.1:9").build()[0]
    assert metric.embedder is metric.llm


def test_openai_takes_the_key_of_the_machine_it_is_made_on(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    named = spec(judge="openai:gpt-5-mini")
    with pytest.raises(SpecError, match=r"cannot load openai:gpt-5-mini on this machine.*OPENAI_API_KEY"):
        named.build()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert named.build()[0].llm.model == "gpt-5-mini"
    assert "secret" not in named.to_json()


def test_what_cannot_be_is_refused_when_it_is_made():
    for wrong, said in (
        ({"metrics": []}, "metrics: is empty"),
        ({"metrics": ["unfaithfulness"]}, "no metric 'unfaithfulness'; there are alignment_coverage"),
        ({"metrics": ["context_relevancy", "context_relevancy"]}, "names one metric twice"),
        ({"metrics": ["people:Nothing"]}, "people:Nothing cannot be loaded"),
        ({"metrics": {"context_relevancy": {"strictness": 3}}}, "no option 'strictness'"),
        ({"metrics": {"context_relevancy": {"llm": "x"}}}, "no option 'llm'; it has asking"),
        ({"metrics": {"context_relevancy": {"threshold": 7}}}, "context_relevancy: threshold"),
        ({"judge": "openai:"}, "judge: 'openai:' is none of local"),
        ({"judge": "https://me:secret@judge.test/v1"}, "contains a password"),
        ({"fields": {"response": 3}}, "fields: {'response': 3}"),
        ({"repeat": 0}, "repeat: 0"),
        ({"max_concurrency": True}, "max_concurrency: True"),
        ({"sample_timeout": float("nan")}, "sample_timeout: nan"),
        ({"journal": Path("x")}, "journal: PosixPath"),
        ({"share_replies": "no"}, "share_replies: 'no'"),
    ):
        with pytest.raises(SpecError) as caught:
            spec(**wrong)
        assert said in str(caught.value)
        assert "secret" not in str(caught.value)
    for text, said in (
        ("{", "is not a spec in JSON"),
        ("[]", "must be a mapping"),
        ('{"judge": "local"}', "missing 1 required keyword-only argument: 'metrics'"),
        ('{"metrics": ["context_relevancy"], "judge": "local", "budget": 3}', "unexpected keyword argument 'budget'"),
    ):
        with pytest.raises(SpecError, match=said):
            Spec.from_json(text)


def test_judge_that_this_machine_does_not_have():
    for more, said in (
        ({"judge": "nowhere.to.be:found"}, "nowhere.to.be:found cannot be loaded"),
        ({"judge": "people:broken"}, "no licence on this machine"),
        ({"judge": "http://127.0.0.1:9"}, "cannot ask"),
        ({"metrics": ["response_relevancy"]}, "does not embed texts; name an embedder"),
    ):
        named = spec(**more)  # another machine may have it
        with pytest.raises(SpecError, match=said):
            named.build()


def test_limits_are_divided_and_never_exceeded():
    share = Spec(**FULL).divided(4)
    assert (share.max_concurrency, share.requests_per_minute, share.tokens_per_minute) == (2, 22.5, 250.125)
    with pytest.raises(SpecError, match="16 calls in flight are too few for 17 workers"):
        spec().divided(17)
    with pytest.raises(ValueError, match="workers: 0"):
        spec().divided(0)
