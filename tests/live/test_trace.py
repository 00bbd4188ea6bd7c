"""From a score to its run: the app's ids, and what outcomes say of the run."""

import pytest

from ragstone import trace_id

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
