import functools

import pytest

from ragstone.sinks import CallableSink, Record

from .cases import score


async def keep_later(records: list[Record]) -> None:
    pass


class LaterKeeper:
    async def __call__(self, records: list[Record]) -> None:
        pass


def test_it_gets_a_list_of_its_own() -> None:
    given = (score("a"), score("b"))
    CallableSink(lambda records: records.clear()).write(given)
    assert len(given) == 2
    calls: list[list[Record]] = []
    sink = CallableSink(calls.append)
    sink.write([])
    sink.write(given)
    assert calls == [list(given)]


def test_async_functions_are_refused() -> None:
    for function in (keep_later, LaterKeeper(), functools.partial(keep_later)):
        with pytest.raises(TypeError, match=r"is async; pass a plain function"):
            CallableSink(function)


def test_what_turns_out_to_be_async_is_not_taken_for_done() -> None:
    with pytest.raises(TypeError, match="to be awaited"):
        CallableSink(lambda records: keep_later(records)).write([score()])


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be called"):
        CallableSink("print")
