"""From a score to its run: the app's ids, and what outcomes say of the run."""

import asyncio
from typing import Any

import pytest

from ragstone import Monitor, Sample, trace_id
from ragstone.live.trace import own_id

from .kit import Kept, live, metric, sample


def test_the_id_of_a_block_is_that_of_its_samples() -> None:
    with live(sinks=(sink := Kept())) as monitor:
        with trace_id("request 7"):
            monitor.submit(sample(None))
            monitor.submit(sample("own"))
            monitor.submit(sample(None))
        monitor.submit(sample(None, metadata={"ragstone_trace_id": "request 8"}))
        monitor.submit(sample(None))
    ids = [record.sample_id for record in sink.records.values()]
    assert sorted(ids)[-4:] == ["request 7", "request 7/2", "request 8", "sown"]
    assert len(set(ids)) == 5


def test_blocks_of_tasks_do_not_mix() -> None:
    async def request(name: str) -> str | None:
        with trace_id(name):
            await asyncio.sleep(0)
            return own_id({})

    async def both() -> list[str | None]:
        return await asyncio.gather(request("a"), request("b"))

    assert asyncio.run(both()) == ["a", "b"]
    assert own_id({}) is None


def test_a_block_needs_an_id() -> None:
    with pytest.raises(ValueError, match="trace_id: is empty"), trace_id(""):
        pass
    with pytest.raises(TypeError, match="trace_id: is int"), trace_id(7):
        pass


ABOUT = {"name": "rag", "tags": ["a", "b"], "user_id": "u", "session_id": 5, "run_id": "r", "secret": "s"}


@pytest.mark.parametrize("store_text", [True, False])
def test_outcomes_say_of_which_run_they_are(store_text: bool) -> None:
    with live(metric(), sinks=(sink := Kept()), store_text=store_text) as monitor:
        monitor.submit(sample(1, metadata=ABOUT))
    kept = sink.only()
    assert (kept.run_name, kept.tags, kept.user_id, kept.thread_id, kept.run_id) == ("rag", ("a", "b"), "u", "5", "r")


def test_what_is_not_to_be_kept_is_not() -> None:
    with live(metric(), sinks=(sink := Kept()), keep=["run_name"]) as monitor:
        monitor.submit(sample("ada", metadata=ABOUT))
        monitor.submit(sample("ada", metadata=ABOUT))
    kept = sink.only()
    assert (kept.run_name, kept.tags, kept.user_id, kept.thread_id, kept.run_id) == ("rag", (), None, None, None)
    assert len(kept.sample_id) == 32
    assert monitor.stats().duplicate == 1


@pytest.mark.parametrize(("keep", "wrong"), [("id", "'id'"), (["name"], "'name'"), (5, "5")])
def test_keep_is_checked(keep: Any, wrong: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"keep.*: {wrong}"):
        Monitor(metric(), keep=keep)


def test_history_is_redacted_and_counted() -> None:
    turns = [{"role": "human", "content": "I am Ada."}, {"role": "ai", "content": "Hello, Ada." * 99}]
    given = Sample(id="1", user_input="Who?", retrieved_contexts=["I."], response="x", history=turns)
    with live(
        metric(), sinks=(sink := Kept()), store_text=True, redact=lambda t: t.replace("Ada", "[name]")
    ) as monitor:
        monitor.pause()
        monitor.submit(given)
        assert monitor.stats().queued_bytes > 11 * 99
        monitor.resume()
    assert [turn.role for turn in sink.only().sample.history] == ["user", "assistant"]
    assert "Ada" not in str(sink.only().sample)
