"""Computing for the judge beside an app: one thread at a time, and no longer than anybody waits for it."""

import re
import threading
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone import Metric, Sample
from ragstone.errors import CannotScore
from ragstone.judging import fence
from ragstone.pace import Pace, current, pieces, search, step
from ragstone.testing import FakeLLM
from ragstone.text import split_sentences

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Kept, adds_up, live, submit


class Seen:
    def __init__(self) -> None:
        self.together = self.most = 0
        self.ended = threading.Event()
        self.free = threading.Event()
        self.lock = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Computing(Metric):
    """Computes as `work` does, asks the judge, and computes again."""

    name = "computing"
    version = "1"
    required_fields = ("response",)
    prompts: ClassVar = {"say": "Say yes."}
    work: Any = field(hash=False)
    llm: Any = field(default_factory=lambda: FakeLLM(lambda request: "yes"))

    def _flow(self, sample: Sample) -> Any:
        self.work(sample)
        yield from self.ask_choice(self.choice("say", {"response": "x"}, "yes or no?", ("yes", "no")))
        self.work(sample)
        return self._score(1.0, "Done.")


def test_one_thread_computes_at_a_time() -> None:
    seen = Seen()

    def work(_: Sample) -> None:
        with seen.lock:
            seen.together += 1
            seen.most = max(seen.most, seen.together)
        for _number in range(20):
            step()
            time.sleep(0.0005)  # lets the others go on, if they may
        with seen.lock:
            seen.together -= 1

    with live(Computing(work=work), sinks=(sink := Kept()), workers=4) as monitor:
        submit(monitor, range(12))
        assert monitor.flush(PATIENCE)
    assert (seen.most, len(sink.records)) == (1, 12)


def endless(seen: Seen) -> Any:
    def work(asked: Sample) -> None:
        try:
            while asked.id == "s0":
                step()
        except CannotScore:
            seen.ended.set()
            raise

    return work


def test_a_timeout_ends_computing_too() -> None:
    seen = Seen()
    monitor = live(Computing(work=endless(seen)), sinks=(sink := Kept()), workers=1, timeout=0.3)
    submit(monitor, range(3))
    assert seen.ended.wait(PATIENCE)
    assert monitor.close(PATIENCE)
    assert monitor.stats().reasons == {"unscored": {"timeout": 1}}
    assert {key[0] for key, record in sink.records.items() if record.outcome.metric == "computing"} == {
        "s0",
        "s1",
        "s2",
    }


def test_closing_ends_computing_too() -> None:
    seen = Seen()
    monitor = live(Computing(work=endless(seen)), workers=1)
    submit(monitor, range(3))
    soon(lambda: monitor.stats().in_hand)
    assert not monitor.close(0.0)
    assert seen.ended.wait(PATIENCE)
    assert adds_up(monitor.stats())


def test_computing_that_takes_no_step_keeps_the_others_back_until_its_timeout_at_most() -> None:
    seen = Seen()

    def work(asked: Sample) -> None:
        assert asked.id != "s0" or seen.free.wait(PATIENCE)

    monitor = live(Computing(work=work), sinks=(sink := Kept()), workers=2, timeout=0.5)
    submit(monitor, range(6))
    assert monitor.flush(PATIENCE)
    assert sink.ids == {f"s{i}" for i in range(6)}
    assert monitor.stats().scored >= 4  # two at most were in hand when the time was up
    seen.free.set()
    assert monitor.close(PATIENCE)


def test_one_that_was_given_up_does_not_begin_again() -> None:
    pace = Pace(threading.Lock())
    pace.give_up()
    with pytest.raises(CannotScore), pace:
        raise AssertionError("it was let in")
    with pytest.raises(CannotScore):
        pace.step()
    other = Pace(pace._computing)
    with other:
        pace.give_up()  # once more: it holds nothing, and must not let others in beside this one
        assert pace._computing.locked()


@pytest.mark.parametrize(
    "compute",
    [
        lambda text: split_sentences(text),
        lambda text: split_sentences("Is it “so”? -- " + text),  # by pysbd
        lambda text: fence({"text": text}),
        lambda text: list(search(re.compile("x"), text)),
    ],
)
def test_long_texts_are_worked_through_in_steps(compute: Any) -> None:
    class Counting(Pace):
        steps = 0

        def step(self) -> None:
            self.steps += 1

    token = current.set(pace := Counting(threading.Lock()))
    try:
        compute("It was 5 of 6 in No. 7. " * 3_000)
    finally:
        current.reset(token)
    assert pace.steps >= 7


@given(st.text("ab\n", max_size=300), st.sampled_from(["b+", r"(?<=a)b", r"\Aa", r"b\Z", r"\bab", "(?=b)", "a{1,9}?b"]))
def test_searching_piece_by_piece_finds_the_same(text: str, pattern: str) -> None:
    long = text * 60  # up to 18,000 characters: a piece has 10,000
    compiled = re.compile(pattern)
    found = [match.span() for match in search(compiled, long)]
    if max((end - start for start, end in found), default=0) < 2_000:
        assert found == [match.span() for match in compiled.finditer(long)]
    assert "".join(pieces(long)) == long


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?=b)", "a" * 10_000 + "b"),  # stands where the second piece begins: found once
        ("b+", "a" * 9_990 + "b" * 20 + "a" * 20_000),  # begins in one piece and ends in the next: found once, whole
    ],
)
def test_searching_at_the_border_of_two_pieces(pattern: str, text: str) -> None:
    compiled = re.compile(pattern)
    assert [match.span() for match in search(compiled, text)] == [match.span() for match in compiled.finditer(text)]
