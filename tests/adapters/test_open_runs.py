"""The open runs of an app: what a tree holds, which runs belong to none, and what is given up."""

import gc
import os
from collections.abc import Iterator

import pytest

from ragstone.adapters.answering import ModelCall
from ragstone.adapters.open_runs import MOST_OPEN, OpenRuns
from ragstone.adapters.runs import Run


@pytest.fixture
def given_up() -> Iterator[list[tuple[object, str]]]:
    noted: list[tuple[object, str]] = []
    yield noted
    gc.collect()


def opened(given_up: list[tuple[object, str]]) -> OpenRuns:
    return OpenRuns(lambda root, reason: given_up.append((root.id, reason)))


def test_the_silent_longest_of_too_many_trees_are_given_up_with_all_that_begins_below(
    given_up: list[tuple[object, str]],
) -> None:
    runs = opened(given_up)
    lost = 5_000
    for number in range(MOST_OPEN + lost):
        assert runs.begin(Run(number, "chain"))
    kept = [number for number in range(MOST_OPEN + lost) if runs.begin(Run(("search", number), "retriever"), number)]
    assert kept == list(range(lost, MOST_OPEN + lost))
    assert given_up == [(number, "never_ended") for number in range(lost)]
    assert all(runs.end(number) is not None for number in kept)
    assert len(runs) == 0


@pytest.mark.parametrize(("count", "length", "too_large"), [(100, 200_000, True), (20, 200_000, False)])
def test_a_tree_with_too_much_text_is_given_up_once(
    given_up: list[tuple[object, str]], count: int, length: int, too_large: bool
) -> None:
    runs = opened(given_up)
    runs.begin(Run("app", "chain", inputs="x" * 20_000_000))
    for number in range(count):
        runs.begin(Run(number, "retriever"), "app")
        runs.end(number, [{"text": f"{number:06}" + "x" * length}])
    assert given_up == ([("app", "too_large")] if too_large else [])
    assert (runs.end("app") is None) == too_large


def test_what_begins_below_a_tree_that_was_given_up_is_in_none_however_much_it_is(
    given_up: list[tuple[object, str]],
) -> None:
    runs = opened(given_up)
    runs.begin(Run("app", "chain"))
    assert sum(runs.begin(Run(number, "retriever"), "app") for number in range(150_000)) <= 20_000
    assert (given_up, len(runs)) == ([("app", "too_large")], 0)


def test_a_text_counts_once_however_many_runs_hand_it_on(given_up: list[tuple[object, str]]) -> None:
    runs = opened(given_up)
    runs.begin(Run("app", "chain"))
    text = "x" * 5_000_000
    for number in range(100):
        runs.begin(Run(number, "chain", inputs={"documents": [text]}), "app")
        runs.end(number, {"documents": (text,), "number": number})
    assert runs.end("app") is not None
    assert given_up == []


def prompted(runs: OpenRuns, calls: int, *prompt: str) -> list[Run]:
    runs.begin(Run("app", "chain"))
    models = [Run(number, "model") for number in range(calls)]
    for number, run in enumerate(models):
        runs.begin(run, "app")
        given = [*prompt, f"{number:06}" + "x" * 400_000]
        for said in ([], ["An answer."]):
            runs.note_call(number, ModelCall(given, said))
        runs.end(number)
    return models


def test_the_prompts_of_a_tree_are_kept_up_to_a_bound_of_their_own_and_then_none(
    given_up: list[tuple[object, str]],
) -> None:
    kept, dropped = [prompted(opened(given_up), calls, "y" * 100_000) for calls in (4, 40)]
    assert all(run.call is not None and run.call.said == ["An answer."] for run in kept)
    assert all(run.call is None for run in dropped)
    assert given_up == []
    long = prompted(opened(given_up), 1, *["the same message"] * 200_000)
    assert long[0].call is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_starts_with_none(given_up: list[tuple[object, str]]) -> None:
    runs = opened(given_up)
    runs.begin(Run("app", "chain"))
    if (child := os.fork()) == 0:
        os._exit(len(runs))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(runs) == 1
