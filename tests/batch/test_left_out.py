"""One sample's error never changes how another is asked; what the server refuses is in the report and the journal."""

import json
import re

import pytest

from ragstone import ContextRelevancy, Faithfulness, Limits, Score, evaluate
from ragstone.clients import OpenAICompatible

from ..support.openai_server import NO_SYSTEM, Answer, error  # noqa: TID252

YES = '{"ids": [1]}'


def rows(number, bad=2):
    texts = ["At what temperature does the schema burn?" if i == bad else f"Who wrote book {i}?" for i in range(number)]
    return [{"question": text, "contexts": ["Ann. Bob."]} for text in texts]


def score(server, number=6, **options):
    judge = OpenAICompatible("m", base_url=server.url, max_retries=0)
    return evaluate(
        rows(number), [ContextRelevancy(llm=judge)], limits=Limits(max_concurrency=1), progress=False, **options
    )


def details(status, message, **fields):
    answer = error(status, message)
    answer.body["error"].update(fields)
    return answer


ABOUT_ONE_SAMPLE = {
    "openai, too long": details(
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 137655 tokens "
        "(including 348 in the response_format schemas.). Please reduce the length of the messages or schemas.",
        param="messages",
        code="context_length_exceeded",
    ),
    "vllm, too long": details(
        400, "You passed 4097 input tokens (with the guided schema); the maximum context length is 4096", param=None
    ),
    "openrouter, moderated": details(
        403,
        "m requires moderation. Your input was flagged",
        metadata={"reasons": ["violence"], "flagged_input": "at what temperature does the schema burn"},
    ),
    "azure, filtered": details(
        400, "The response was filtered by the content management policy (response_format)", code="content_filter"
    ),
    "a proxy that quotes": details(400, "could not parse {'content': 'At what TEMPERATURE does the schema burn?'}"),
    "a proxy's 500": Answer({"error": {"message": "response_format could not be read"}}, 500, {"Retry-After-Ms": "1"}),
    "another parameter": details(400, "no 'response_format' where 'messages[1]' is so", param="messages[1].content"),
}


@pytest.mark.parametrize("answer", ABOUT_ONE_SAMPLE.values(), ids=ABOUT_ONE_SAMPLE)
def test_an_error_about_one_sample_changes_nothing_for_the_others(openai_server, answer):
    server = openai_server(lambda body: answer if "burn" in str(body["messages"]) else YES)
    report = score(server)
    assert [isinstance(result.outcome, Score) for result in report.results()] == [True, True, False, True, True, True]
    assert {(body["temperature"], "response_format" in body) for body in server.bodies} == {(0, True)}
    assert not [note for note in report.notes if "without" in note]


def test_what_the_server_refuses_is_in_the_report(openai_server):
    def server_that_changes(body):
        late = "book 3?" in str(body["messages"]) or "book 4?" in str(body["messages"])
        return error(400, "no schemas here", param="response_format") if late and "response_format" in body else YES

    server = openai_server(server_that_changes)
    report = score(server, 6)
    assert [note for note in report.notes if "without" in note] == [
        "m was asked without a schema in single requests, because it refused: no schemas here"
    ]
    assert ["response_format" in body for body in server.bodies] == [True] * 4 + [False, True, False, True]
    assert "asked without a schema in single requests" in str(report)


TOO_LARGE = {
    "OpenAI": details(400, "Expected at most 1000 enum values in total within a schema.", param="response_format"),
    "Gemini": details(400, "The specified schema produces a constraint that has too many states for serving."),
    "guided decoding": Answer({"detail": "guided_json: grammar compilation timed out after 10s"}, 400),
}


@pytest.mark.parametrize("answer", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_schema_that_is_too_large_for_the_server_is_left_out_of_its_own_request_alone(openai_server, answer):
    def with_claims(body):
        if len(str(body.get("response_format"))) > 6_000:
            return answer
        if "List the claims" in str(body["messages"]):
            return json.dumps({"claims": [f"It is {i}." for i in range(50 if "Long" in str(body["messages"]) else 1)]})
        listed = re.findall(r"^\[(\d+)\] It is", body["messages"][-1]["content"], re.MULTILINE)
        return json.dumps({"verdicts": {n: {"evidence": [1], "verdict": "supported"} for n in listed}})

    server = openai_server(with_claims)
    judge = OpenAICompatible("m", base_url=server.url, max_retries=0)
    samples = [{"contexts": ["A."], "answer": "Long." if i == 1 else f"Short {i}."} for i in range(4)]
    report = evaluate(samples, [Faithfulness(llm=judge)], limits=Limits(max_concurrency=1), progress=False)
    assert [each.outcome.value for each in report.results()] == [1.0] * 4
    with_schema = ["response_format" in body for body in server.bodies]
    assert with_schema.count(False) == 1
    assert len(with_schema) == 7, "short rows share a call"
    assert not judge.left_out


def refuses_temperature(body):
    return error(400, "Unsupported value", param="temperature") if "temperature" in body else YES


def test_a_journal_keeps_apart_what_was_asked_with_and_without(openai_server, tmp_path):
    server = openai_server(refuses_temperature)
    for _ in range(2):
        report = score(server, journal=tmp_path / "journal.db")
        assert "without a temperature" in report.notes[0]
    assert len(server.seen) == 7  # six samples, one refusal, and nothing for the second run


def test_what_was_judged_with_a_parameter_is_judged_again_without_it(openai_server, tmp_path):
    server = openai_server(lambda _: YES)
    score(server, 2, journal=tmp_path / "journal.db")
    judge = OpenAICompatible("m", base_url=server.url, max_retries=0)
    judge.leave_out({"temperature": "it is said to take none"})
    evaluate(rows(2), [ContextRelevancy(llm=judge)], journal=tmp_path / "journal.db", progress=False)
    assert ["temperature" in body for body in server.bodies] == [True, True, False, False]


@pytest.mark.parametrize(("status", "body"), NO_SYSTEM)
def test_a_judge_without_a_system_role_reads_the_instructions_first(openai_server, status, body):
    answer = Answer(body, status)
    server = openai_server(lambda body: answer if body["messages"][0]["role"] == "system" else YES)
    report = score(server, 3)
    assert [type(result.outcome) for result in report.results()] == [Score] * 3
    assert len(server.seen) == 4
    system, user = (message["content"] for message in server.bodies[0]["messages"])
    assert server.bodies[1]["messages"] == [{"role": "user", "content": f"{system}\n\n{user}"}]
    assert "m was asked without a system message" in report.notes[0]
