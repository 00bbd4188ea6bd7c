"""What is taken out of samples before they are queued and of outcomes before they are kept; where that fails, nothing is kept."""

import logging
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone import ContextRelevancy, LLMReply, Sample, Unscored
from ragstone.live import Sampling
from ragstone.live.redaction import storable, without_quotations
from ragstone.results.record import encode, without_texts
from ragstone.testing import FakeLLM

from .kit import Kept, live, metric, sample, yes

SECRET = "hunter2"


def hide(text: str) -> str:
    return text.replace(SECRET, "[hidden]")


def secretive() -> Sample:
    return Sample(
        id="s1",
        user_input=f"What is {SECRET}?",
        retrieved_contexts=["Nothing.", f"It is {SECRET}."],
        response=f"{SECRET}.",
        reference=f"{SECRET}.",
        history=[{"role": "human", "content": f"I am {SECRET}."}],
        metadata={
            f"key {SECRET}": f"value {SECRET}",
            "error": f"ValueError: {SECRET}",
            "deep": [{f"{SECRET}": (f"{SECRET}", {SECRET})}],
        },
    )


def test_every_text_is_redacted_before_it_goes_anywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    prompts: list[str] = []

    def reply(request: Any) -> Any:
        prompts.append(request.system + request.user)
        return ValueError(f"cannot read {request.user}")

    with (
        caplog.at_level(logging.DEBUG),
        live(metric(reply), sinks=(sink := Kept()), redact=hide, store_text=True) as monitor,
        live(metric(reply), redact=hide, workers=0, outbox=tmp_path / "outbox.db") as taking,
    ):
        monitor.submit(secretive())
        taking.submit(secretive())
    assert taking.stats().spooled == 1
    assert SECRET.encode() not in (tmp_path / "outbox.db").read_bytes()
    record = sink.only()
    for place in (str(prompts), encode(record), caplog.text, repr(monitor.stats())):
        assert SECRET not in place
    assert "[hidden]" in str(prompts)
    kept = record.sample
    assert kept is not None
    assert kept.user_input == "What is [hidden]?"
    assert kept.retrieved_contexts == ("Nothing.", "It is [hidden].")
    assert [(turn.role, turn.content) for turn in kept.history] == [("user", "I am [hidden].")]
    assert kept.metadata == {
        "key [hidden]": "value [hidden]",
        "error": "ValueError: [hidden]",
        "deep": [{"[hidden]": ["[hidden]", ["[hidden]"]]}],
    }


def test_it_runs_on_the_apps_thread_once_for_each_text_and_only_for_chosen_samples() -> None:
    seen: list[tuple[str, int]] = []

    def redact(text: str) -> str:
        seen.append((text, threading.get_ident()))
        return "lone \ud800"

    with live(
        sinks=(sink := Kept()), redact=redact, sampling=Sampling(where=lambda given: given.id == "s1"), store_text=True
    ) as monitor:
        monitor.submit(sample(1, retrieved_contexts=["a", "a"], metadata={"k": "v", "n": 5}))
        monitor.submit(sample(2))
        monitor.submit(sample(1))
    assert sorted(text for text, _ in seen) == ["There.", "a", "a", "k", "n", "question 1?", "v"]
    assert {thread for _, thread in seen} == {threading.get_ident()}
    assert encode(sink.only())


def raises(text: str) -> str:
    raise ValueError(f"cannot hide {text}")


@pytest.mark.parametrize("redact", [raises, lambda text: None], ids=["raises", "none"])
def test_what_cannot_be_redacted_is_not_kept(redact: Any, caplog: pytest.LogCaptureFixture) -> None:
    llm = FakeLLM(yes)
    with (
        caplog.at_level(logging.DEBUG),
        live(ContextRelevancy(llm=llm), sinks=(sink := Kept()), redact=redact) as monitor,
    ):
        monitor.submit(secretive())
    assert monitor.stats().reasons == {"dropped": {"redaction_failed": 1}}
    assert monitor.stats().errors == {"redact": 1}
    assert not llm.requests
    assert not sink.records
    assert SECRET not in caplog.text + repr(monitor.stats())


def test_errors_of_what_saw_the_text_unredacted_say_only_their_type(caplog: pytest.LogCaptureFixture) -> None:
    def where(given: Sample) -> bool:
        raise ValueError(f"odd: {given.user_input}")

    monitor = live(redact=hide, sampling=Sampling(where=where))
    with caplog.at_level(logging.DEBUG):
        monitor.submit(secretive())
        monitor.failed("extract", LookupError(f"nothing in {SECRET}"))
        monitor.submit(Sample.model_construct(user_input="x", retrieved_contexts=[SECRET, 5]))
    assert monitor.stats().errors == {"where": 2, "extract": 1}
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("reply", [yes, lambda request: ValueError(f"400: refused {request.user}")], ids=["yes", "no"])
def test_texts_stay_out_of_the_record_unless_they_are_stored(reply: Any) -> None:
    words = ("Where does the green heron nest?", "The green heron nests in trees near water.", "It nests in trees.")
    given = {"user_input": words[0], "retrieved_contexts": [words[1]], "response": words[2]}
    for store_text in (False, True):
        with live(metric(reply), sinks=(sink := Kept()), store_text=store_text) as monitor:
            monitor.submit(sample(1, metadata={"user": "Ada"}, **given))
        kept = encode(sink.only())
        assert [word in kept for word in ("s1", *words, "heron", "Ada")] == [True, *[store_text] * 5]


QUOTED = "The green heron nests in trees near the water."


@given(st.text("ab", max_size=60), st.lists(st.slices(60) | st.text("ab", max_size=9), max_size=5))
def test_every_quotation_is_found(text: str, parts: list[str | slice]) -> None:
    detail = "".join(text[part] if isinstance(part, slice) else part for part in parts)
    length = min(24, len(text))
    starts = range(len(detail) - length + 1) if length >= 8 else range(0)
    quoted = {at for start in starts if detail[start : start + length] in text for at in range(start, start + length)}
    expected = "".join("?" if at in quoted else letter for at, letter in enumerate(detail))
    assert without_quotations(detail, [text]) == re.sub(r"\?+", "[text]", expected)


@pytest.mark.parametrize(("ended", "said"), [("length", "raise max_tokens"), ("SAFETY", "withheld by a filter")])
def test_why_a_reply_ended_is_kept_without_what_it_quotes(ended: str, said: str) -> None:
    judge = FakeLLM(lambda request: LLMReply('{"ids": [1], "green": 1}', ended=ended))
    taken = Sample(user_input="Where?", retrieved_contexts=[QUOTED])
    outcome = ContextRelevancy(llm=judge).score(taken)
    assert ("green" in outcome.detail) == (ended == "length")  # type: ignore[union-attr]
    for found in (storable(outcome, taken, store_text=False), without_texts(outcome)):
        assert f"({ended})" in found.detail  # type: ignore[union-attr]
        assert said in found.detail  # type: ignore[union-attr]
        assert "green" not in found.detail  # type: ignore[union-attr]


@pytest.mark.parametrize("store_text", [True, False])
def test_what_is_kept_of_an_unscored_one(store_text: bool) -> None:
    sample = Sample(retrieved_contexts=[QUOTED])
    detail = f"ValueError: sk-abcdefghijkl cannot read {QUOTED}"
    error = Unscored(metric="m", reason="judge_error", detail=detail, version="1")
    found = storable(error, sample, store_text=store_text)
    assert found.detail == f"ValueError: [hidden] cannot read {QUOTED if store_text else '[text]'}"  # type: ignore[union-attr]
    unread = Unscored(metric="m", reason="judge_unparseable", detail="two objects: {'a': 'green'}", version="1")
    found = storable(unread, sample, store_text=store_text)
    assert ("green" in found.detail) == store_text  # type: ignore[union-attr]
