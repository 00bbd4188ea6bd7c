"""What the peers' scripts share, and llama-index's from end to end; the other peers live in environments of their own."""

import asyncio
import http.client
import importlib.util
import json
import math
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from agreement.lines import read_lines

from ragstone.testing import FakeEmbedder

PEERS = Path(__file__).resolve().parents[2] / "benchmarks" / "agreement" / "peers"


def load(name):
    """Import a script as it imports its neighbours, by its bare name."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, PEERS / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


scorelines, readings, serve = load("scorelines"), load("readings"), load("serve")


def row(number, metric="ResponseRelevancy", task="pairwise", target=1, **more):
    use = {"metric": metric, "task": task, "target": target}
    return {"id": f"r{number}", "user_input": "What?", "response": f"Because of {number}.", "use": use, **more}


def written(folder, name, rows):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")


class Script:
    """Stands where llama.cpp stands: says `reply` in pieces, and keeps what it was asked."""

    def __init__(self, reply="[RESULT] 2"):
        self.reply = reply
        self.asked = []
        self.started, self.stopped = threading.Event(), threading.Event()

    def handle_chat_completions(self, body, callback):
        self.asked.append(body)
        if isinstance(self.reply, dict):
            callback({"error": self.reply})
            return
        if self.reply is None:  # says the same for ever, until nobody listens
            while not callback({"choices": [{"delta": {"content": "and "}}]}):
                self.started.set()
                time.sleep(0.001)
            self.stopped.set()
            return
        for piece in self.reply:
            callback({"choices": [{"delta": {"content": piece}}]})
        callback({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        callback({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})


@contextmanager
def serving(script):
    models = serve.Models(script, FakeEmbedder(dim=4), reply_tokens=9)
    with serve.server_of(models, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


def post(url, body, key="k"):
    headers = {"Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


MESSAGES = [{"role": "user", "content": "Hello"}]


class TestRows:
    @pytest.mark.parametrize(
        ("metric", "metrics"),
        [
            ("ContextRelevancy", ("ContextRelevancy",)),
            ("ResponseRelevancy (noncommittal flag)", ("ResponseRelevancy",)),
            ("SummarizationScore + Summarization (coverage only)", ("SummarizationScore", "AlignmentCoverage")),
            ("Summarization (coverage only) + SummarizationScore", ("AlignmentCoverage", "SummarizationScore")),
            ("Summarization", ("AlignmentCoverage",)),
        ],
    )
    def test_the_metric_is_the_one_that_the_row_names(self, metric, metrics):
        assert scorelines.Row("f", row(1, metric)).metrics == metrics

    def test_a_limit_takes_whole_groups_and_labelled_rows_only(self, tmp_path):
        written(tmp_path, "b.jsonl", [row(i, pair_id=f"p{i // 2}") for i in range(6)])
        written(
            tmp_path, "a.jsonl", [row(i, task="binary", target=None if i < 2 else 0, pair_id="p") for i in range(6)]
        )
        written(tmp_path, "c.jsonl", [row(i, task="correlation", doc_id=f"d{i % 2}") for i in range(6)])

        found = [(each.file, each.data["id"]) for each in scorelines.rows(tmp_path, limit=3)]

        assert found == [
            *[("a", f"r{i}") for i in (2, 3, 4)],
            *[("b", f"r{i}") for i in range(4)],
            *[("c", f"r{i}") for i in (0, 2, 4)],
        ]
        assert len(list(scorelines.rows(tmp_path))) == 4 + 6 + 6
        assert {each.file for each in scorelines.rows(tmp_path, part="b")} == {"b"}
        assert {each.file for each in scorelines.rows(tmp_path / "b.jsonl")} == {"b"}

    def test_an_unknown_metric_is_told(self):
        with pytest.raises(SystemExit, match="f: use.metric: 'Fluency' is none of ContextRelevancy, "):
            _ = scorelines.Row("f", row(1, "Fluency")).metrics


class TestLines:
    def test_a_line_cut_short_is_scored_again(self, tmp_path):
        out = tmp_path / "out.jsonl"
        out.write_bytes(b'{"file": "f", "id": "1", "metric": "m"}\n{"file": "f", "id": "2", "me')

        assert scorelines.done(out) == {("f", "1", "m")}
        assert out.read_bytes().endswith(b'"m"}\n')

    def test_a_line_is_known_again_by_its_files_name_alone(self, tmp_path):
        out = tmp_path / "out.jsonl"
        out.write_bytes(b'{"file": "A_open/f.jsonl", "id": "1", "metric": "m"}\n')
        assert scorelines.done(out) == {("f", "1", "m")}
        assert scorelines.done(tmp_path / "none.jsonl") == set()

    @pytest.mark.parametrize(
        ("raised", "unscored"), [(KeyError("secret text"), "KeyError"), (TimeoutError("of a client"), "TimeoutError")]
    )
    def test_a_failure_is_named_and_its_message_is_not_kept(self, raised, unscored):
        async def fails(_):
            raise raised

        assert asyncio.run(scorelines.found(fails, {}, 60)) == scorelines.Found(None, unscored=unscored)

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_a_value_that_is_no_number_is_none(self, value):
        async def scores(_):
            return scorelines.Found(value, {"part": 1.0})

        found = asyncio.run(scorelines.found(scores, {}, 60))

        assert (found.value, found.unscored) == (None, "not finite")

    def test_a_row_that_takes_too_long_is_given_up(self):
        async def waits(_):
            await asyncio.Event().wait()

        assert asyncio.run(scorelines.found(waits, {}, 0.05)).unscored == "timeout"


class TestReadings:
    SENTENCES = (("In 1937 , cast members sang .", "Others slept ."), ("Others slept .", "Yes."))

    @pytest.mark.parametrize(
        ("said", "places"),
        [
            ("Insufficient Information", []),
            ("", []),
            ("In 1937, cast members sang.", [(0, 0)]),
            ("Here they are: OTHERS slept.", [(0, 1), (1, 0)]),
            ("cast members sang", [(0, 0)]),  # a part
            ('["cast members sang", "Others slept."]', [(0, 0), (0, 1), (1, 0)]),
            ("sang", []),  # too short a part
            ("Nobody of the cast members sang.", []),  # invented
        ],
    )
    def test_sentences_that_the_judge_quoted(self, said, places):
        assert [mark[:2] for mark in readings.chosen(said, self.SENTENCES) if mark[2]] == places

    def test_json_escapes(self):
        assert readings.unquoted(r'["He said \"no\".\nShe\/he"]') == '["He said "no".\nShe/he"]'

    def test_qa_is_what_length_does_not_explain(self):
        source, summary, qa = "x" * 200, "y" * 50, 0.6
        value = qa * 0.5 + (1 - 50 / 200) * 0.5
        parts = readings.qa_and_conciseness(value, source, summary)
        assert (parts["qa"], parts["conciseness"]) == (pytest.approx(qa), 0.75)
        assert readings.qa_and_conciseness(0.5, "x", "longer")["conciseness"] == 0.0

    def test_statements_that_are_sentences(self):
        counts = readings.copied(["Others slept.", "The cast sang."], self.SENTENCES)
        assert counts == {"statements": 2, "verbatim": 1}


class TestServer:
    def test_n_answers_and_what_each_key_has_used(self):
        script = Script("hi")
        with serving(script) as url:
            reply = post(f"{url}/chat/completions", {"messages": MESSAGES, "n": 3, "temperature": 0.3})
            mine, others = (scorelines.used(scorelines.Place(url, key, 60)) for key in ("k", "other"))

        assert [choice["message"]["content"] for choice in reply["choices"]] == ["hi"] * 3
        assert mine == {"calls": 1, "input_tokens": 7, "output_tokens": 9}
        assert others == {"calls": 0, "input_tokens": 0, "output_tokens": 0}
        assert script.asked[0]["max_tokens"] == 9  # the server's limit, as the request has none
        assert "n" not in script.asked[0]

    def test_a_limit_of_the_request_holds(self):
        script = Script()
        with serving(script) as url:
            post(f"{url}/chat/completions", {"messages": MESSAGES, "max_tokens": 2})
        assert script.asked[0]["max_tokens"] == 2

    @pytest.mark.parametrize(
        ("path", "body", "reply"),
        [
            ("chat/completions", {"messages": MESSAGES, "tools": [{}]}, "x"),
            ("chat/completions", {"messages": MESSAGES, "stream": True}, "x"),
            ("chat/completions", {"messages": MESSAGES}, {"message": "the prompt is too long"}),
            ("chat/completions", {"messages": MESSAGES, "n": "three"}, "x"),
            ("chat/completions", [], "x"),
            ("embeddings", {"input": [[1, 2]]}, "x"),
            ("embeddings", {"input": []}, "x"),
        ],
    )
    def test_what_cannot_be_answered_is_a_400_and_the_server_goes_on(self, path, body, reply):
        with serving(Script(reply)) as url:
            with pytest.raises(urllib.error.HTTPError) as refused:
                post(f"{url}/{path}", body)
            assert refused.value.code == 400
            assert json.load(refused.value)["error"]["message"]
            assert len(post(f"{url}/embeddings", {"input": "text"})["data"]) == 1

    def test_embeddings_stand_in_order(self):
        with serving(Script()) as url:
            data = post(f"{url}/embeddings", {"input": ["a", "b"]})["data"]
        assert [each["embedding"] for each in data] == FakeEmbedder(dim=4).embed(["a", "b"]).tolist()

    def test_what_nobody_waits_for_is_stopped(self):
        script = Script(None)
        with serving(script) as url:
            connection = http.client.HTTPConnection(url.removeprefix("http://").removesuffix("/v1"), timeout=60)
            connection.request("POST", "/v1/chat/completions", json.dumps({"messages": MESSAGES}))
            assert script.started.wait(60)
            connection.close()
            assert script.stopped.wait(60)


class TestRun:
    def run(self, monkeypatch, folder, url, out, *options):
        script = load("of_llama_index")
        monkeypatch.setattr(sys, "argv", ["x", str(folder), "--url", url, "--out", str(out), *options])
        scorelines.main("llama-index-core", script.scorers)
        return read_lines(out)

    @pytest.fixture
    def folder(self, tmp_path):
        pytest.importorskip("llama_index.core")
        pytest.importorskip("httpx")
        contexts = {"retrieved_contexts": ["One. Two."], "sentences": [["One.", "Two."]]}
        labels = {"relevant": [], "share": 0.0}
        written(
            tmp_path / "data", "a.jsonl", [row(1, "ContextRelevancy", "sentence labels + share", labels, **contexts)]
        )
        written(tmp_path / "data", "b.jsonl", [row(i, pair_id="p", target=i) for i in (0, 1)])
        written(tmp_path / "data", "c.jsonl", [row(1, "SummarizationScore + Summarization", "correlation", doc_id="d")])
        return tmp_path / "data"

    def test_a_line_for_each_row_once(self, monkeypatch, folder, tmp_path):
        out, script = tmp_path / "scores" / "peer.jsonl", Script("Good. [RESULT] 2")
        with serving(script) as url:
            self.run(monkeypatch, folder, url, out, "--file", "b.")
            lines = self.run(monkeypatch, folder, url, out)

        assert [(line.file, line.id, line.metric, line.value) for line in lines] == [
            ("b", "r0", "response_relevancy", 1.0),
            ("b", "r1", "response_relevancy", 1.0),
            ("a", "r1", "context_relevancy", 0.5),
        ]
        assert len(script.asked) == 3  # what was there was not asked again
        assert {(line.calls, line.input_tokens, line.output_tokens) for line in lines} == {(1, 7, 3)}
        assert "Because" not in out.read_text()

    def test_a_reply_without_a_result_has_no_score(self, monkeypatch, folder, tmp_path):
        with serving(Script("It is fine.")) as url:
            lines = self.run(monkeypatch, folder, url, tmp_path / "peer.jsonl", "--file", "b.")
        assert [(line.value, line.unscored) for line in lines] == [(None, "invalid_result")] * 2

    def test_a_refused_row_is_unscored_and_the_next_one_is_tried(self, monkeypatch, folder, tmp_path):
        with serving(Script({"message": "the prompt is too long"})) as url:
            lines = self.run(monkeypatch, folder, url, tmp_path / "peer.jsonl", "--file", "b.")
        assert [line.unscored for line in lines] == ["HTTPStatusError"] * 2

    def test_without_a_judge_it_stops_and_writes_nothing(self, monkeypatch, folder, tmp_path):
        with serving(Script()) as url:
            pass
        with pytest.raises(SystemExit, match="run again to go on"):
            self.run(monkeypatch, folder, url, tmp_path / "peer.jsonl")
        assert not (tmp_path / "peer.jsonl").exists()
