"""A data set judged through a batch endpoint: as directly, whatever the endpoint does with it, and paid once."""

import asyncio
import json
import logging
import re
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import openai
import pytest

from ragstone import ContextRelevancy, Metric, ResponseRelevancy, Sample, SummarizationScore, Unscored
from ragstone.asking import ask, embed, parse_json
from ragstone.asking.schema import TEXT, record
from ragstone.batch.evaluate import evaluate
from ragstone.batch.provider import EmbedderError, FolderError, ProviderBatch
from ragstone.batch.provider.answers import read_answers
from ragstone.batch.provider.state import State
from ragstone.clients import AnswerError, OpenAICompatible
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.batch_server import (  # noqa: TID252 - under importlib mode tests are no package
    CLOSE,
    PAGE,
    Answer,
    BatchServer,
    chat,
    error,
)
from .provider_judge import MODEL, all_four, judge, plain, row, rows


@pytest.fixture
def serve():
    """Starts a `BatchServer`."""
    with ExitStack() as stack:
        yield lambda reply=judge, **settings: stack.enter_context(BatchServer(reply, **settings))


@pytest.fixture
def client():
    """Makes clients of a server, and closes them."""
    with ExitStack() as stack:
        yield lambda server, **settings: stack.enter_context(
            OpenAICompatible(MODEL, base_url=server.url, **{"max_retries": 0, **settings})
        )


@pytest.fixture
def batch(client, tmp_path):
    """Makes a `ProviderBatch` in the test's folder, with nothing asked directly unless told."""

    def make(server, **settings):
        given = {"folder": tmp_path / "run", "poll_seconds": 0.001, "try_first": False, **settings}
        return ProviderBatch(client(server), **given)

    return make


def context_relevancy(server, client):
    return [ContextRelevancy(llm=client(server))]


def outcomes(report):
    return [result.outcome for result in report.results()]


def scored(report):
    return [not isinstance(outcome, Unscored) for outcome in outcomes(report)]


# --- as directly


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
def test_it_finds_what_asking_directly_finds(asking, serve, client, tmp_path):
    server = serve(looks=3)
    llm = client(server, asking=asking)
    directly = evaluate(rows(4), all_four(llm))
    asked = len(server.direct)
    run = ProviderBatch(llm, folder=tmp_path / "run", poll_seconds=0.001, try_first=False)
    report = run.run(rows(4), all_four(llm), name="mine")
    assert plain(report.results()) == plain(directly.results())
    assert len(server.direct) == asked, "nothing was asked directly"
    assert len(server.batches) == 2, "a batch for each round of the longest metric"
    assert set(server.ran.values()) == {1}
    assert sum(server.ran.values()) == asked == report.usage.llm_calls
    assert (report.usage.input_tokens, report.usage.output_tokens) == (11 * asked, 7 * asked)
    assert report.name == "mine"
    assert report.sample(2).id == "q2"
    if asking == "one_by_one":
        assert all("sentence_expected" in o.breakdown for o in outcomes(report) if o.metric == "context_relevancy")


def test_request_lines_are_of_the_endpoint_s_form(serve, batch, client):
    server = serve()
    batch(server).run(rows(2), [ContextRelevancy(llm=client(server, asking="one_by_one"), asking="one_by_one")])
    for line in server.requests:
        assert set(line) == {"custom_id", "method", "url", "body"}
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        assert line["body"]["model"] == MODEL
        assert line["body"]["logprobs"] is True
        assert re.fullmatch("[0-9a-f]{32}", line["custom_id"])


def test_a_url_and_a_model_will_do(serve, tmp_path):
    server = serve()
    run = ProviderBatch(server.url, MODEL, folder=tmp_path / "run", poll_seconds=0.001)
    assert scored(run.run(rows(2), [ContextRelevancy(llm=OpenAICompatible(MODEL, base_url=server.url))])) == [
        True,
        True,
    ]


def test_extra_fields_go_into_the_body(serve, tmp_path):
    server = serve()
    with OpenAICompatible(MODEL, base_url=server.url, extra_body={"reasoning_effort": "low"}) as llm:
        ProviderBatch(llm, folder=tmp_path, poll_seconds=0.001, try_first=False).run(
            rows(1), [ContextRelevancy(llm=llm)]
        )
    assert server.requests[0]["body"]["reasoning_effort"] == "low"


def test_draws_share_nothing_and_equal_samples_share_all(serve, batch, client):
    server = serve()
    report = batch(server).run([row(1), row(1)], context_relevancy(server, client), repeat=3)
    assert len(server.ran) == 3
    assert report.usage.llm_calls == 6, "the second of two equal samples has the outcome of the first, as by a journal"
    assert [(r.row, r.draw) for r in report.results()] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_each_draw_is_asked_as_it_is_directly(serve, batch, client):
    server = serve()
    metrics = [ResponseRelevancy(llm=client(server), embedder=FakeEmbedder(), strictness=2, sampling="n_calls")]
    evaluate(rows(2), metrics, repeat=3)
    directly = list(server.direct)
    batch(server).run(rows(2), metrics, repeat=3)
    asked = [line["body"] for line in server.requests]
    one, other = (sorted(json.dumps(body, sort_keys=True) for body in bodies) for bodies in (asked, directly))
    assert one == other
    assert {body["seed"] for body in asked if body["temperature"]} == {0, 1, 1_000_000, 1_000_001, 2_000_000, 2_000_001}


def test_samples_of_one_source_share_their_questions_and_pay_once(serve, batch, client):
    server = serve()
    given = [{**row(1), "response": f"It is novel {i}."} for i in range(3)]
    metrics = [SummarizationScore(llm=client(server))]
    report = batch(server).run(given, metrics)
    assert len(server.ran) == 1 + 3
    assert (report.usage.llm_calls, report.usage.output_tokens) == (4, 4 * 7)
    assert [outcome.usage.llm_calls for outcome in outcomes(report)] == [2, 1, 1]
    assert evaluate(given, metrics).usage.llm_calls == 4


def test_replies_that_cannot_be_used_are_asked_for_again_in_the_next_batch(serve, batch, client):
    def reply(body):
        again = "Your previous reply could not be used" in body["messages"][1]["content"]
        return (
            judge(body)
            if again and "book 1?" in str(body)
            else "no JSON"
            if "book 0?" not in str(body)
            else judge(body)
        )

    server = serve(reply)
    report = batch(server).run(rows(3), context_relevancy(server, client))
    assert scored(report) == [True, True, False]
    assert outcomes(report)[2].reason == "judge_unparseable"
    assert [len(content.splitlines()) for content in server.uploads] == [3, 2]
    assert outcomes(report)[1].usage.llm_calls == 2


def test_what_needs_no_judge_needs_no_batch(serve, batch, client):
    server = serve()
    report = batch(server).run([{"question": "Why?"}, "no sample"], context_relevancy(server, client))
    assert outcomes(report)[0].reason == "missing_input"
    assert [bad.line for bad in report.bad_rows] == [2]
    assert server.log == []


def test_generators_are_read_once_and_asynchronous_ones_refused(serve, batch, client):
    server = serve()
    metrics = context_relevancy(server, client)
    assert scored(batch(server).run(iter(rows(3)), metrics)) == [True] * 3

    async def arriving():
        yield Sample(response="x")

    with pytest.raises(TypeError, match="asynchronous"):
        batch(server).start(arriving(), metrics)


def test_a_file_is_read_anew_for_each_round(serve, batch, client, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows(3)) + "oops\n")
    server = serve()
    report = batch(server).run(path, [SummarizationScore(llm=client(server))])
    assert scored(report) == [True] * 3
    assert len(report.bad_rows) == 1


def test_it_works_inside_a_running_loop(serve, batch, client):
    server = serve()

    async def notebook():
        return batch(server).run(rows(1), context_relevancy(server, client))

    assert scored(asyncio.run(notebook())) == [True]


# --- what goes wrong with single requests


def test_a_request_that_fails_is_asked_once_more(serve, batch, client):
    seen = Counter()

    def reply(body):
        text = str(body)
        seen[text] += 1
        if "book 1?" in text or ("book 2?" in text and seen[text] == 1):
            return error(500, "The model fell over.")
        return judge(body)

    server = serve(reply)
    report = batch(server).run(rows(4), context_relevancy(server, client))
    assert scored(report) == [True, False, True, True]
    failed = outcomes(report)[1]
    assert failed.reason == "judge_error"
    assert "context_relevancy.sentences: status 500: The model fell over." in failed.detail
    assert sorted(seen.values()) == [1, 1, 2, 2]


def test_one_failed_request_of_several_fails_its_sample_only(serve, batch, client):
    def reply(body):
        return (
            error(400, "refused by a filter") if "<sentence" in str(body) and "It rains" in tail(body) else judge(body)
        )

    def tail(body):
        return body["messages"][1]["content"].partition("<sentence")[2]

    server = serve(reply)
    llm = client(server, asking="one_by_one")
    report = batch(server).run(
        [row(0), {**row(1), "retrieved_contexts": ["Ann wrote it. It is dry."]}], [ContextRelevancy(llm=llm)]
    )
    assert scored(report) == [False, True]


def test_strange_lines_are_left_out(serve, batch, client):
    def spoil(number, output, errors):
        first = output[0]
        output += [
            {**first, "custom_id": "nobody's"},
            {**first, "response": {"status_code": 200, "body": chat('{"ids": []}')}},  # there twice: the first counts
            b"{torn",
            b"[]",
            {"custom_id": 7},
            {**output[1], "custom_id": None},
        ]
        errors.append({**first, "response": {"status_code": 500, "body": {"error": {"message": "too late"}}}})
        errors.insert(
            0, {"custom_id": output[1]["custom_id"], "response": None, "error": {"code": "x", "message": "y"}}
        )

    server = serve()
    server.lines = spoil
    run = batch(server)
    report = run.run(rows(3), context_relevancy(server, client))
    assert scored(report) == [True] * 3
    assert [each.replies for each in run.batches] == [3]
    assert all(outcome.breakdown["sentence"] > 0 for outcome in outcomes(report))
    assert set(server.ran.values()) == {1}


def test_an_error_before_the_answer_does_not_hide_it(serve, batch, client):
    def spoil(number, output, errors):
        for line in list(output):
            output.insert(0, {**line, "response": {"status_code": 500, "body": {}}})

    server = serve()
    server.lines = spoil
    assert scored(batch(server).run(rows(3), context_relevancy(server, client))) == [True] * 3
    assert len(server.batches) == 1


def test_a_reply_that_is_no_completion_is_a_failure(serve, batch, client):
    server = serve(lambda body: {"object": "strange"})
    report = batch(server).run(rows(1), context_relevancy(server, client))
    assert "status 200, and no completion" in outcomes(report)[0].detail
    assert len(server.batches) == 2


def test_lines_of_answers():
    told = {"custom_id": "k", "response": None, "error": {"code": "batch_expired", "message": "late"}}
    (answered,) = read_answers(json.dumps(told).encode())
    assert (answered.not_run, answered.problem, answered.reply(None)) == (True, "batch_expired: late", None)


# --- what goes wrong with whole batches


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_what_a_batch_left_unanswered_is_asked_again_and_no_more(status, serve, batch, client):
    server = serve()
    server.ending = lambda number: status if number == 1 else "completed"
    assert scored(batch(server).run(rows(7), context_relevancy(server, client))) == [True] * 7
    assert [len(content.splitlines()) for content in server.uploads] == [7, 4]
    assert set(server.ran.values()) == {1}


def test_batches_that_expire_again_and_again_end(serve, batch, client):
    server = serve()
    server.ending = lambda number: "expired"
    report = batch(server).run(rows(4), context_relevancy(server, client))
    assert len(server.batches) == 3
    assert sum(scored(report)) == 3
    assert (
        "ended without an answer to it (expired)" in next(o for o in outcomes(report) if isinstance(o, Unscored)).detail
    )


def test_a_batch_that_is_refused_as_a_whole_is_tried_again(serve, batch, client):
    server = serve()
    server.ending = lambda number: ("failed", "server_error", "try again") if number <= 2 else "completed"
    assert scored(batch(server).run(rows(3), context_relevancy(server, client))) == [True] * 3
    assert [len(content.splitlines()) for content in server.uploads] == [3, 3, 3]


def test_batches_that_are_always_refused_end(serve, batch, client):
    server = serve()
    server.ending = lambda number: ("failed", "model_not_found", "no such model for batches")
    run = batch(server, max_requests=2)
    report = run.run(rows(4), context_relevancy(server, client))
    assert len(server.batches) == 4 * 2
    assert {o.reason for o in outcomes(report)} == {"judge_error"}
    assert "model_not_found: no such model for batches" in outcomes(report)[0].detail
    assert sum(server.ran.values()) == 0
    assert run.batches[0].status == "failed"


def test_too_many_tokens_at_once_are_sent_in_pieces(serve, batch, client):
    server = serve()

    def ending(number):
        many = len(server.uploads[number - 1].splitlines()) > 2
        return ("failed", "token_limit_exceeded", "Enqueued token limit reached") if many else "completed"

    server.ending = ending
    assert scored(batch(server).run(rows(8), context_relevancy(server, client))) == [True] * 8
    assert [len(content.splitlines()) for content in server.uploads] == [8, 4, 4, 2, 2, 2, 2]


def test_a_batch_that_the_server_forgot_is_sent_again(serve, batch, client):
    server = serve()
    metrics = context_relevancy(server, client)
    first = batch(server)
    first.start(rows(2), metrics)
    assert not first.step()
    server.batches[0]["id"] = "gone"
    assert scored(batch(server).run(rows(2), metrics)) == [True] * 2
    assert len(server.batches) == 2


def test_an_output_file_that_is_gone_is_asked_for_again(serve, batch, client):
    server = serve()
    server.before_answer = lambda method, path, s: (
        s.files.pop("file_2", None) and None if path == "/batches/batch_1" else None
    )
    assert scored(batch(server).run(rows(2), context_relevancy(server, client))) == [True] * 2
    assert len(server.batches) == 2


@pytest.mark.parametrize(("limits", "files"), [({"max_requests": 3}, [3, 3, 1]), ({"max_bytes": 6_000}, None)])
def test_many_requests_are_split(limits, files, serve, batch, client):
    server = serve()
    assert scored(batch(server, **limits).run(rows(7), context_relevancy(server, client))) == [True] * 7
    lengths = [len(content.splitlines()) for content in server.uploads]
    assert lengths == files if files else len(lengths) > 1
    assert sum(lengths) == 7
    assert all(len(content) <= 6_000 for content in server.uploads) or files


def test_a_request_that_no_file_holds_is_not_asked(serve, batch, client):
    server = serve()
    given = [row(0), {**row(1), "retrieved_contexts": ["It is long. " * 1000]}]
    report = batch(server, max_bytes=6_000).run(given, context_relevancy(server, client))
    assert scored(report) == [True, False]
    assert "max_bytes" in outcomes(report)[1].detail


# --- paid once


def test_a_lost_answer_does_not_begin_a_batch_twice(serve, batch, client):
    server = serve()
    lost = []

    def lose(method, path, s):
        if (method, path) == ("POST", "/batches") and not lost:
            lost.append(path)
            return CLOSE
        return None

    server.before_answer = lose
    for i in range(2 * PAGE):  # others' batches, on other pages of the list
        server.batches.append({"id": f"other_{i}", "status": "completed", "metadata": None})
    run = batch(server)
    run.start(rows(2), context_relevancy(server, client))
    with pytest.raises(openai.APIConnectionError):
        run.step()
    for i in range(2 * PAGE):
        server.batches.append({"id": f"later_{i}", "status": "completed", "metadata": {"ragstone": "another"}})
    while not run.step():
        pass
    assert scored(run.report()) == [True] * 2
    assert server.log.count(("POST", "/batches")) == 1
    assert set(server.ran.values()) == {1}


def test_where_batches_are_not_listed_it_is_begun_again(serve, batch, client, caplog):
    server = serve()
    server.lists_batches = False
    server.before_answer = lambda method, path, s: (
        CLOSE if (method, path) == ("POST", "/batches") and s.log.count((method, path)) == 1 else None
    )
    run = batch(server)
    run.start(rows(2), context_relevancy(server, client))
    with pytest.raises(openai.APIConnectionError):
        run.step()
    while not run.step():
        pass
    assert scored(run.report()) == [True] * 2
    assert "begun again" in caplog.text


def test_a_batch_that_is_refused_when_it_is_begun_says_so_and_can_be_tried_again(serve, batch, client):
    server = serve()
    server.before_answer = lambda method, path, s: (
        error(400, "billing hard limit") if (method, path) == ("POST", "/batches") and len(s.batches) == 1 else None
    )
    run = batch(server)
    with pytest.raises(openai.BadRequestError, match="billing hard limit"):
        run.run(rows(2), context_relevancy(server, client))
    server.batches.clear()
    server.before_answer = lambda *_: None
    assert scored(run.run(rows(2), context_relevancy(server, client))) == [True] * 2


def test_a_network_that_fails_meanwhile_is_waited_for(serve, batch, client, caplog):
    server = serve(looks=6)
    server.before_answer = lambda method, path, s: (
        error(503, "busy") if path == "/batches/batch_1" and len(s.log) % 2 else None
    )
    assert scored(batch(server).run(rows(2), context_relevancy(server, client))) == [True] * 2
    assert "trying again" in caplog.text


def test_a_server_that_is_not_there_is_said_at_once(batch, client, tmp_path):
    nowhere = OpenAICompatible(MODEL, base_url="http://127.0.0.1:9/v1", max_retries=0)
    with nowhere, pytest.raises(openai.APIConnectionError):
        ProviderBatch(nowhere, folder=tmp_path).run(rows(1), [ContextRelevancy(llm=nowhere)])


def test_a_server_without_a_batch_endpoint(serve, batch, client):
    server = serve()
    server.before_answer = lambda method, path, s: error(404, "Not Found") if path == "/files" else None
    with pytest.raises(AnswerError, match="no batch endpoint"):
        batch(server).run(rows(1), context_relevancy(server, client))


# --- parameters that the model does not take


def picky(body):
    """A reasoning model: no temperature, no log-probabilities."""
    for name in ("temperature", "logprobs"):
        if name in body:
            return error(400, f"Unsupported parameter: '{name}' is not supported with this model.", param=name)
    return judge(body)


def test_the_first_request_of_each_form_is_asked_directly(serve, batch, client):
    server = serve(picky)
    llm = client(server, asking="one_by_one")
    run = ProviderBatch(llm, folder=batch(server)._folder, poll_seconds=0.001)
    report = run.run(rows(3), [ContextRelevancy(llm=llm), SummarizationScore(llm=llm)])
    assert scored(report) == [True] * 6
    assert all("temperature" not in line["body"] and "logprobs" not in line["body"] for line in server.requests)
    assert len(server.requests) == len(server.ran)
    answered = [body for body in server.direct if not {"temperature", "logprobs"} & set(body)]
    assert len(answered) == 2, "one of words, one of a schema"
    assert report.usage.llm_calls == len(server.ran) + len(answered)


def test_refused_parameters_cost_no_second_ask(serve, batch, client):
    server = serve(picky)
    seen = Counter()

    def reply(body):
        answer = picky(body)
        if not isinstance(answer, Answer) and "book 1?" in str(body):
            seen["book 1"] += 1
            return error(500, "fell over") if seen["book 1"] == 1 else answer
        return answer

    server.reply = reply
    report = batch(server).run(rows(2), context_relevancy(server, client))
    assert scored(report) == [True] * 2
    assert seen["book 1"] == 2


def test_what_was_learned_is_known_in_the_next_process(serve, batch, client, tmp_path):
    server = serve(picky)
    metrics = [SummarizationScore(llm=client(server))]
    first = batch(server)
    first.start(rows(2), metrics)
    while not any("temperature" not in line["body"] for line in server.requests):
        first.step()
    uploads = len(server.uploads)
    second = batch(server)  # with a client of its own
    second.run(rows(2), metrics)
    assert all(b'"temperature"' not in content for content in server.uploads[uploads:])
    assert len(server.uploads) > uploads


def test_a_wrong_key_is_found_before_anything_is_uploaded(serve, batch, client):
    server = serve(lambda body: error(401, "Incorrect API key"))
    run = batch(server, try_first=True)
    with pytest.raises(openai.AuthenticationError):
        run.run(rows(2), context_relevancy(server, client))
    assert server.uploads == []
    server.reply = judge
    assert scored(run.run(rows(2), context_relevancy(server, client))) == [True] * 2


def test_a_round_that_was_not_gathered_to_its_end_is_gathered_again(serve, batch, client):
    server = serve(lambda body: error(503, "busy") if "logprobs" in body else judge(body))
    llm = client(server, asking="one_by_one")
    metrics = [SummarizationScore(llm=llm), ContextRelevancy(llm=llm)]
    given = [{**each, "user_input": None} for each in rows(4)] + rows(2)  # words are wanted after the first forms
    run = batch(server, try_first=True)
    with pytest.raises(openai.InternalServerError):
        run.run(given, metrics)
    assert server.uploads == []
    server.reply = judge
    assert scored(run.run(given, metrics)) == [True, False] * 4 + [True] * 4
    assert len(server.batches) == 2, "a batch for each round"
    assert set(server.ran.values()) == {1}


def test_a_first_request_that_is_itself_at_fault_stops_nothing(serve, batch, client):
    server = serve(lambda body: error(400, "refused by a filter") if "book 0?" in str(body) else judge(body))
    report = batch(server, try_first=True).run(rows(3), context_relevancy(server, client))
    assert scored(report) == [False, True, True]
    assert len(server.direct) == 2


def test_a_model_that_refuses_every_first_request_is_said(serve, batch, client):
    server = serve(lambda body: error(400, "nothing pleases"))
    with pytest.raises(openai.BadRequestError):
        batch(server, try_first=True).run(rows(9), context_relevancy(server, client))
    assert len(server.direct) == 3
    assert server.uploads == []


# --- leaving and coming back


def test_steps_from_cron(serve, batch, client):
    server = serve(looks=3)
    metrics = [SummarizationScore(llm=client(server))]
    steps = 0
    while True:
        run = batch(server)
        run.start(rows(2), metrics)
        if run.step():
            break
        steps += 1
        assert steps < 50
    assert steps > 4
    assert scored(run.report()) == [True] * 2
    assert len(server.batches) == 2
    assert [(b.round, b.lines, b.status, b.replies) for b in run.batches] == [
        (1, 2, "completed", 2),
        (2, 2, "completed", 2),
    ]
    log = len(server.log)
    assert run.step(), "done stays done"
    assert scored(batch(server).run(rows(2), metrics)) == [True] * 2
    assert len(server.log) == log


def test_what_there_is_before_the_end(serve, batch, client):
    server = serve()
    run = batch(server)
    run.start([row(0), {"question": "Why?"}], context_relevancy(server, client))
    assert not run.step()
    assert [result.sample_id for result in run.results()] == ["2"]
    assert len(list(run.report().results())) == 1


def test_evaluate_goes_on_with_the_journal(serve, batch, client, tmp_path):
    server = serve(lambda body: error(500, "no") if "book 1?" in str(body) else judge(body))
    metrics = context_relevancy(server, client)
    assert scored(batch(server).run(rows(3), metrics, repeat=2)) == [True, True, False, False, True, True]
    server.reply = judge
    report = evaluate(rows(3), metrics, repeat=2, journal=tmp_path / "run" / "journal.db")
    assert scored(report) == [True] * 6
    assert len(server.direct) == 2, "only what failed is asked"


def test_replies_are_found_by_evaluate_too(serve, batch, client, tmp_path):
    server = serve()
    metrics = context_relevancy(server, client)
    run = batch(server)
    run.start(rows(3), metrics, repeat=2)
    run.step()
    with pytest.MonkeyPatch.context() as patch:  # killed when the replies were there and the outcomes were not
        patch.setattr(ProviderBatch, "_next_round", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run.step()
    assert scored(evaluate(rows(3), metrics, repeat=2, journal=tmp_path / "run" / "journal.db")) == [True] * 6
    assert server.direct == []


@pytest.mark.parametrize(
    ("change", "what"),
    [("samples", "samples"), ("metrics", "metrics"), ("repeat", "repeat"), ("judge", "judge")],
)
def test_a_folder_holds_one_run(change, what, serve, batch, client):
    server = serve()
    llm = client(server)
    batch(server).start(rows(2), [ContextRelevancy(llm=llm)])
    batch(server).start(rows(2), [ContextRelevancy(llm=llm)])
    given = rows(3) if change == "samples" else rows(2)
    other = [ContextRelevancy(llm=llm, granularity="chunk" if change == "metrics" else "sentence")]
    if change == "judge":
        server = serve()
        other = [ContextRelevancy(llm=client(server))]
        what = "judge and metrics"
    run = batch(server)
    with pytest.raises(FolderError, match=f"holds a run of other {what}; take another folder"):
        run.start(given, other, repeat=2 if change == "repeat" else 1)


def test_one_process_at_a_time(serve, batch, client, monkeypatch):
    monkeypatch.setattr("ragstone.batch.provider.state._BUSY_SECONDS", 0.0)
    server = serve()
    run = batch(server)
    with State(run._folder), pytest.raises(FolderError, match="another process"):
        run.start(rows(1), context_relevancy(server, client))


def test_a_newer_folder_and_a_foreign_file_are_refused(serve, batch, client, tmp_path):
    server = serve()
    run = batch(server)
    run.start(rows(1), context_relevancy(server, client))
    with State(run._folder) as state:
        state._rows("PRAGMA user_version = 9")
    with pytest.raises(FolderError, match="newer ragstone"):
        run.step()
    other = tmp_path / "other"
    other.mkdir()
    (other / "state.db").write_text("no database, " * 100)
    with pytest.raises(FolderError, match="cannot be used"):
        batch(server, folder=other).start(rows(1), context_relevancy(server, client))


@pytest.mark.parametrize("name", ["OPENAI_ORG_ID", "OPENAI_PROJECT_ID"])
def test_what_is_openai_s_goes_to_no_other_server(name, serve, batch, client, monkeypatch):
    monkeypatch.setenv(name, "secret-of-mine")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-mine")
    server = serve()
    batch(server, try_first=True).run(rows(2), context_relevancy(server, client))
    assert ("POST", "/batches") in server.log
    assert "secret-of-mine" not in str(server.headers)


def test_uploads_are_sent_again_whole(serve, client, tmp_path):
    server = serve()
    server.before_answer = lambda method, path, s: (
        error(503, "busy") if path == "/files" and len(s.uploads) == 1 else None
    )
    llm = client(server, max_retries=1)
    run = ProviderBatch(llm, folder=tmp_path, poll_seconds=0.001, try_first=False)
    assert scored(run.run(rows(2), [ContextRelevancy(llm=llm)])) == [True] * 2
    assert server.uploads[0] == server.uploads[1]
    assert len(server.batches) == 1


# --- embedders and metrics of one's own


class Flaky(FakeEmbedder):
    down = True

    def embed(self, texts):
        if self.down:
            raise ConnectionError("embedder is down")
        return super().embed(texts)


@pytest.mark.parametrize("many", [3, 40])
def test_an_embedder_that_is_down(many, serve, batch, client):
    server = serve()
    embedder = Flaky()
    metrics = [ResponseRelevancy(llm=client(server), embedder=embedder)]
    run = batch(server)
    if many == 3:
        assert {o.reason for o in outcomes(run.run(rows(many), metrics))} == {"judge_error"}
    else:
        with pytest.raises(EmbedderError, match="run again when it is back"):
            run.run(rows(many), metrics)
    embedder.down = False
    assert scored(batch(server).run(rows(many), metrics)) == [True] * many
    assert set(server.ran.values()) == {1}


@dataclass(frozen=True, kw_only=True)
class Own(Metric):
    """Embeds, asks, embeds, asks; raises for some."""

    name: ClassVar[str] = "own"
    version: ClassVar[str] = "1"
    required_fields: ClassVar = ("response",)
    embedder: FakeEmbedder

    def _embedder(self):
        return self.embedder

    def _flow(self, sample):
        if "book 1" in sample.response:
            raise RuntimeError("mine")
        total = 0.0
        for i in range(2):
            vectors = yield from embed([sample.response, str(i)])
            total += float(np.abs(vectors).sum())
            request = self.request(f"step{i}", "Say it.", {"response": sample.response}, f"Say {i}.", record(said=TEXT))
            yield from ask(request, lambda reply: parse_json(reply.text)["said"])
        return self._score(1.0, f"{total:.6f}")


def test_a_metric_of_ones_own(serve, batch, client):
    server = serve()
    metric = Own(llm=client(server), embedder=FakeEmbedder())
    report = batch(server).run(rows(3), [metric])
    assert scored(report) == [True, False, True]
    assert outcomes(report)[1].detail == "RuntimeError: mine"
    assert len(metric.embedder.calls) == 4, "what was embedded is not embedded again in the next round"
    directly = evaluate(rows(3), [Own(llm=client(server), embedder=FakeEmbedder())])
    assert plain(report.results()) == plain(directly.results())


# --- what is refused


def test_wrong_arguments(serve, batch, client, tmp_path):
    server = serve()
    llm = client(server)
    for wrong in ((llm, "m"), (server.url,), (FakeLLM(lambda _: None),)):
        with pytest.raises(TypeError, match="client: pass"):
            ProviderBatch(*wrong, folder=tmp_path)
    for name, value in (("poll_seconds", -1), ("max_requests", 0), ("max_bytes", 0)):
        with pytest.raises(ValueError, match=name):
            ProviderBatch(llm, folder=tmp_path, **{name: value})
    run = batch(server)
    with pytest.raises(ValueError, match="its judge is 'other'"):
        run.start([], [ContextRelevancy(llm=FakeLLM(lambda _: None, model="other"))])
    with pytest.raises(ValueError, match="two of the name"):
        run.start([], [ContextRelevancy(llm=llm), ContextRelevancy(llm=llm)])
    for wrong in (ContextRelevancy(llm=llm), [], [ContextRelevancy]):
        with pytest.raises(TypeError, match="metrics: "):
            run.start([], wrong)
    with pytest.raises(ValueError, match="repeat"):
        run.start([], [ContextRelevancy(llm=llm)], repeat=0)
    with pytest.raises(RuntimeError, match="call start"):
        run.step()
    assert "run" in repr(run)


def test_progress_is_logged(serve, batch, client, caplog):
    caplog.set_level(logging.INFO, "ragstone")
    server = serve()
    batch(server).run(rows(2), context_relevancy(server, client))
    assert "requests-00001.jsonl: 2 requests in batch batch_1, of round 1" in caplog.text
    assert "requests-00001.jsonl: completed, 2 replies of 2" in caplog.text
