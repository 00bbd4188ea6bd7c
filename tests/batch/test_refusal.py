"""A provider that is down for a while is waited for; one that refuses the first calls for good is asked no more."""

import logging

import pytest

from ragstone import ContextRelevancy, Criterion, Limits, ResponseRelevancy, Score, evaluate
from ragstone.clients import OpenAICompatible

from ..support.judges import served  # noqa: TID252
from ..support.openai_server import CLOSE, Answer, error  # noqa: TID252

YES = '{"ids": [1]}'


def rows(number):
    return [{"question": f"Who wrote book {i}?", "answer": "Ann.", "contexts": ["Ann. Bob."]} for i in range(number)]


def client(server):
    return OpenAICompatible("m", base_url=server.url, api_key="own-key-7", max_retries=0)


def outcomes(report):
    return [result.outcome for result in report.results()]


def test_an_outage_is_waited_for(openai_server):
    down = [Answer({}, 503, {"Retry-After-Ms": "10"})] * 6
    server = openai_server(lambda body: down.pop() if down else YES)
    scored = outcomes(evaluate(rows(4), [ContextRelevancy(llm=client(server))], limits=Limits(max_concurrency=2)))
    assert [type(each) for each in scored] == [Score] * 4
    assert not down


def test_only_the_run_tries_again(openai_server):
    server = openai_server(lambda body: Answer({}, 503, {"Retry-After-Ms": "10"}))
    judge = OpenAICompatible("m", base_url=server.url)
    report = evaluate(rows(1), [ContextRelevancy(llm=judge)])
    assert [each.reason for each in outcomes(report)] == ["judge_error"]
    assert len(server.seen) == report.spent.llm_calls == 6


def test_a_client_with_a_method_of_the_users_is_asked_by_it(openai_server):
    class Logged(OpenAICompatible):
        async def agenerate(self, request, /):
            return await super().agenerate(request)

    judge = Logged("m", base_url=openai_server(lambda body: YES).url)
    assert [type(each) for each in outcomes(evaluate(rows(1), [ContextRelevancy(llm=judge)]))] == [Score]


def test_a_connection_that_breaks_in_a_run_is_tried_again(openai_server):
    answers = [YES, CLOSE, YES]
    server = openai_server(lambda body: answers.pop(0))
    judge = OpenAICompatible("m", base_url=server.url)
    report = evaluate(rows(2), [ContextRelevancy(llm=judge)], limits=Limits(max_concurrency=1))
    assert [type(each) for each in outcomes(report)] == [Score] * 2
    assert report.spent.llm_calls == 3


@pytest.mark.parametrize(
    ("status", "way_out"),
    [
        (401, "check the API key"),
        (403, "check what the API key may use"),
        (404, "check the address and the model's name"),
    ],
)
def test_a_first_call_that_is_refused_is_the_last(openai_server, caplog, status, way_out):
    server = openai_server(lambda body: error(status, "not with own-key-7"))
    caplog.set_level(logging.WARNING, "ragstone")
    scored = outcomes(evaluate(rows(60), [ContextRelevancy(llm=client(server))], limits=Limits(max_concurrency=4)))
    assert 1 <= len(server.seen) <= (6 if status == 403 else 4)  # those in flight; of a 403 two more may come first
    assert {each.reason for each in scored} == {"judge_error"}
    assert scored[0].detail.endswith(f"Error code: {status} - not with [hidden]")
    why = f"the judge OpenAICompatible('m', base_url='{server.url}') refused the first call: {way_out} ("
    assert scored[-1].detail.startswith(f"not asked: {why}")
    assert scored[-1].usage.llm_calls == 0
    assert [record.getMessage()[: len(why) + 9] for record in caplog.records] == [f"Gave up: {why}"]
    assert "own-key-7" not in caplog.text


def test_a_refusal_after_an_answer_is_the_samples_own(openai_server):
    server = openai_server(lambda body: YES if "book 0?" in str(body) else error(401, "expired"))
    scored = outcomes(evaluate(rows(20), [ContextRelevancy(llm=client(server))], limits=Limits(max_concurrency=1)))
    assert len(server.seen) == 20
    assert [each.detail for each in scored[1:]] == ["AuthenticationError: Error code: 401 - expired"] * 19


def test_a_server_that_does_not_embed_goes_on_as_a_judge(openai_server):
    server = openai_server(lambda body: error(404, "no embeddings here") if "input" in body else served(body))
    both = client(server)
    metrics = [ContextRelevancy(llm=both), ResponseRelevancy(llm=both, embedder=both)]
    scored = outcomes(evaluate(rows(30), metrics, limits=Limits(max_concurrency=2)))
    assert [type(each) for each in scored[::2]] == [Score] * 30
    assert scored[-1].detail.startswith("not asked: the embedder OpenAICompatible('m'")
    assert sum("input" in body for body in server.bodies) <= 2


ABOUT_CONTENT = {
    "openrouter": error(403, "m requires moderation. Your input was flagged", metadata={"reasons": ["violence"]}),
    "azure": error(400, "The response was filtered", code="content_filter"),
    "gemini": error(403, "The prompt was blocked", code="PROHIBITED_CONTENT"),
    "bedrock": error(404, "Blocked by your guardrail"),
    "it does not say why": error(403, "Forbidden"),
    "too long": error(413, "Request too large"),
}


@pytest.mark.parametrize("answer", ABOUT_CONTENT.values(), ids=ABOUT_CONTENT)
@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_an_error_about_the_first_sample_is_that_samples_own(openai_server, answer, max_concurrency):
    server = openai_server(lambda body: answer if "book 0?" in str(body) else YES)
    report = evaluate(rows(12), [ContextRelevancy(llm=client(server))], limits=Limits(max_concurrency=max_concurrency))
    assert [type(each) is Score for each in outcomes(report)] == [False] + [True] * 11
    assert not report.gave_up


def test_many_moderated_samples_end_no_run(openai_server):
    server = openai_server(lambda body: YES if "book 39?" in str(body) else ABOUT_CONTENT["openrouter"])
    report = evaluate(rows(40), [ContextRelevancy(llm=client(server))], limits=Limits(max_concurrency=4))
    assert isinstance(outcomes(report)[-1], Score)
    assert len(server.seen) == 40


def test_one_sample_that_two_metrics_ask_about_is_one_sample(openai_server):
    judge = client(openai_server(lambda body: error(403, "Forbidden") if "book 0?" in str(body) else served(body)))
    criteria = [Criterion(name, f"Is it {name}?", llm=judge) for name in ("polite", "short", "kind")]
    report = evaluate(rows(4), [ContextRelevancy(llm=judge), *criteria], limits=Limits(max_concurrency=1))
    assert [type(each) is Score for each in outcomes(report)] == [False] * 4 + [True] * 12
