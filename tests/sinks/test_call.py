import functools

import pytest

from ragstone.sinks import CallableSink, Record

from .cases import score

SEEN: list[Record] = []


def keep(records: list[Record]) -> None:
    SEEN.extend(records)


async def keep_later(records: list[Record]) -> None:
    SEEN.extend(records)


async def one_by_one(records: list[Record]):
    yield records


class Keeper:
    def __call__(self, records: list[Record]) -> None:
        SEEN.extend(records)

    async def later(self, records: list[Record]) -> None:
        SEEN.extend(records)


class LaterKeeper:
    async def __call__(self, records: list[Record]) -> None:
        SEEN.extend(records)


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
    for function in (keep_later, one_by_one, Keeper().later, LaterKeeper(), functools.partial(keep_later)):
        with pytest.raises(TypeError, match=r"is async; pass a plain function"):
            CallableSink(function)


def test_what_turns_out_to_be_async_is_not_taken_for_done() -> None:
    with pytest.raises(TypeError, match="to be awaited"):
        CallableSink(lambda records: keep_later(records)).write([score()])


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be called"):
        CallableSink("print")


def test_names() -> None:
    module = __name__
    assert CallableSink(keep).name == f"call:{module}.keep"
    assert CallableSink(functools.partial(keep)).name == f"call:{module}.keep"
    assert CallableSink(Keeper()).name == f"call:{module}.Keeper"
    assert CallableSink(print).name == "call:builtins.print"
    assert CallableSink(keep, name="mine").name == "mine"
