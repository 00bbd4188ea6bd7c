"""A data set judged through a batch endpoint: as directly, whatever the endpoint does with it, and paid once."""

from collections import Counter
from contextlib import ExitStack

import openai
import pytest

from ragstone import ContextRelevancy, ResponseRelevancy, SummarizationScore, Unscored
from ragstone.batch.evaluate import evaluate
from ragstone.batch.provider import FolderError, ProviderBatch
from ragstone.clients import OpenAICompatible
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.batch_server import (  # noqa: TID252 - under importlib mode tests are no package
    CLOSE,
    BatchServer,
    chat,
    error,
)
from .provider_judge import MODEL, all_five, judge, plain, row, rows


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
    directly = evaluate(rows(4), all_five(llm))
    asked = len(server.direct)
    run = ProviderBatch(llm, folder=tmp_path / "run", poll_seconds=0.001, try_first=False)
    report = run.run(rows(4), all_five(llm), name="mine")
    assert plain(report.results()) == plain(directly.results())
    assert len(server.direct) == asked, "nothing was asked directly"
    assert len(server.batches) == 2, "a batch for each round of the longest metric"
    assert set(server.ran.values()) == {1}
    assert sum(server.ran.values()) == asked == report.usage.llm_calls
    assert (report.usage.input_tokens, report.usage.output_tokens) == (11 * asked, 7 * asked)
    assert report.name == "mine"
    assert report.sample(next(each for each in report.results() if each.row == 2)).id == "q2"
    if asking == "one_by_one":
        assert all("sentence_expected" in o.breakdown for o in outcomes(report) if o.metric == "context_relevancy")


def test_each_draw_is_asked_as_it_is_directly(serve, batch, client):
    server = serve()
    metrics = [ResponseRelevancy(llm=client(server), embedder=FakeEmbedder(), strictness=2, sampling="n_calls")]
    batch(server).run(rows(2), metrics, repeat=3)
    asked = [line["body"] for line in server.requests]
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
        bad = "book 2?" in str(body) or ("book 1?" in str(body) and not again)
        return "no JSON" if bad else judge(body)

    server = serve(reply)
    report = batch(server).run(rows(3), context_relevancy(server, client))
    assert scored(report) == [True, True, False]
    assert outcomes(report)[2].reason == "judge_unparseable"
    assert [len(content.splitlines()) for content in server.uploads] == [3, 2]
    assert outcomes(report)[1].usage.llm_calls == 2


# --- what goes wrong with single requests


def test_a_request_that_fails_is_asked_again_and_no_more_than_three_times(serve, batch, client):
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
    assert sorted(seen.values()) == [1, 1, 2, 3]


def test_strange_lines_are_left_out(serve, batch, client):
    def spoil(number, output, errors):
        first = output[0]
        output += [
            {**first, "custom_id": "nobody's"},
            {**first, "response": {"status_code": 200, "body": chat('{"ids": []}')}},  # there twice: the first counts
            b"{torn",
            {"custom_id": 7},
        ]

    server = serve()
    server.lines = spoil
    run = batch(server)
    report = run.run(rows(3), context_relevancy(server, client))
    assert scored(report) == [True] * 3
    assert [each.replies for each in run.batches] == [3]
    assert all(outcome.breakdown["sentence"] > 0 for outcome in outcomes(report))
    assert set(server.ran.values()) == {1}


# --- what goes wrong with whole batches


def test_what_a_batch_left_unanswered_is_asked_again_and_no_more(serve, batch, client):
    server = serve()
    server.ending = lambda number: "expired" if number == 1 else "completed"
    assert scored(batch(server).run(rows(7), context_relevancy(server, client))) == [True] * 7
    assert [len(content.splitlines()) for content in server.uploads] == [7, 4]
    assert set(server.ran.values()) == {1}


def test_batches_that_expire_again_and_again_end(serve, batch, client):
    server = serve()
    server.ending = lambda number: "expired"
    report = batch(server).run(rows(4), context_relevancy(server, client))
    assert len(server.batches) == 3
    assert sum(scored(report)) == 3
    (failed,) = [outcome for outcome in outcomes(report) if isinstance(outcome, Unscored)]
    assert "ended without an answer to it (expired)" in failed.detail


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


def test_many_requests_are_split(serve, batch, client, tmp_path):
    server = serve()
    for limits in ({"max_requests": 3}, {"max_bytes": 6_000}):
        server.uploads.clear()
        run = batch(server, folder=tmp_path / next(iter(limits)), **limits)
        assert scored(run.run(rows(7), context_relevancy(server, client))) == [True] * 7
        lengths = [len(content.splitlines()) for content in server.uploads]
        assert (len(lengths) > 1, sum(lengths)) == (True, 7)
        assert max(lengths) <= 3 if "max_requests" in limits else max(map(len, server.uploads)) <= 6_000


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


def test_a_lost_answer_does_not_begin_a_batch_twice(serve, batch, client):
    server = serve()
    lost = []

    def lose(method, path, s):
        if (method, path) == ("POST", "/batches") and not lost:
            lost.append(path)
            return CLOSE
        return None

    server.before_answer = lose
    run = batch(server)
    run.start(rows(2), context_relevancy(server, client))
    with pytest.raises(openai.APIConnectionError):
        run.step()
    while not run.step():
        pass
    assert scored(run.report()) == [True] * 2
    assert server.log.count(("POST", "/batches")) == 1
    assert set(server.ran.values()) == {1}


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
    assert run.step(), "done stays done"


def test_evaluate_goes_on_with_the_journal(serve, batch, client, tmp_path):
    server = serve(lambda body: error(500, "no") if "book 1?" in str(body) else judge(body))
    metrics = context_relevancy(server, client)
    assert scored(batch(server).run(rows(3), metrics, repeat=2)) == [True, True, False, False, True, True]
    server.reply = judge
    report = evaluate(rows(3), metrics, repeat=2, journal=tmp_path / "run" / "journal.db")
    assert scored(report) == [True] * 6
    assert len(server.direct) == 2, "only what failed is asked"


@pytest.mark.parametrize("change", ["samples", "metrics", "repeat", "judge"])
def test_a_folder_holds_one_run(change, serve, batch, client):
    server = serve()
    llm = client(server)
    batch(server).start(rows(2), [ContextRelevancy(llm=llm)])
    batch(server).start(rows(2), [ContextRelevancy(llm=llm)])
    given = rows(3) if change == "samples" else rows(2)
    other = [ContextRelevancy(llm=llm, granularity="chunk" if change == "metrics" else "sentence")]
    if change == "judge":
        server = serve()
        other = [ContextRelevancy(llm=client(server))]
    run = batch(server)
    with pytest.raises(FolderError, match=f"holds a run of other .*{change}.*; take another folder"):
        run.start(given, other, repeat=2 if change == "repeat" else 1)


def test_one_process_at_a_time(serve, batch, client):
    server = serve()
    run = batch(server)
    with run._opened(), pytest.raises(FolderError, match="another process"):
        run.start(rows(1), context_relevancy(server, client))


def test_another_version_s_folder_is_refused(serve, batch, client):
    server = serve()
    run = batch(server)
    run.start(rows(1), context_relevancy(server, client))
    path = run._folder / "state.json"
    path.write_text(path.read_text().replace('"version":3', '"version":9'))
    with pytest.raises(FolderError, match="another version of ragstone"):
        run.step()


def test_what_is_openai_s_goes_to_no_other_server(serve, batch, client, monkeypatch):
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-secret-of-mine")
    server = serve()
    batch(server, try_first=True).run(rows(2), context_relevancy(server, client))
    assert ("POST", "/batches") in server.log
    assert "secret-of-mine" not in str(server.headers)


# --- embedders and metrics of one's own


class Flaky(FakeEmbedder):
    down = True

    def embed(self, texts):
        if self.down:
            raise ConnectionError("embedder is down")
        return super().embed(texts)


def test_an_embedder_that_is_down(serve, batch, client):
    server = serve()
    embedder = Flaky()
    metrics = [ResponseRelevancy(llm=client(server), embedder=embedder)]
    run = batch(server)
    assert {outcome.reason for outcome in outcomes(run.run(rows(40), metrics))} == {"judge_error"}
    embedder.down = False
    assert scored(batch(server).run(rows(40), metrics)) == [True] * 40
    assert set(server.ran.values()) == {1}


# --- what is refused


def test_wrong_arguments(serve, batch, client, tmp_path):
    server = serve()
    llm = client(server)
    for wrong in ("local", FakeLLM(lambda _: None)):
        with pytest.raises(TypeError, match="client: pass"):
            ProviderBatch(wrong, folder=tmp_path)
    assert repr(ProviderBatch(f"m@{server.url}", folder="x")).startswith("ProviderBatch(OpenAICompatible('m', ")
    for name, value in (("poll_seconds", -1), ("max_requests", 0), ("max_bytes", 0)):
        with pytest.raises(ValueError, match=name):
            ProviderBatch(llm, folder=tmp_path, **{name: value})
    run = batch(server)
    with pytest.raises(ValueError, match="its judge is 'other'"):
        run.start([], [ContextRelevancy(llm=FakeLLM(lambda _: None, model="other"))])
    with pytest.raises(RuntimeError, match="call start"):
        run.step()
