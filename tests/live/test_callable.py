import functools

import pytest

from ragstone.live import CallableSink, Record

from .cases import score


async def keep_later(records: list[Record]) -> None:
    pass


class LaterKeeper:
    async def __call__(self, records: list[Record]) -> None:
        pass


def test_it_gets_a_list_of_its_own() -> None:
    records = (score("a"), score("b"))
    CallableSink(lambda own: own.clear()).write(records)
    calls: list[list[Record]] = []
    sink = CallableSink(calls.append)
    sink.write([])
    sink.write(records)
    assert calls == [list(records)]


@pytest.mark.parametrize("function", ["print", keep_later, LaterKeeper(), functools.partial(keep_later)])
def test_what_is_no_plain_function_is_refused(function) -> None:
    with pytest.raises(TypeError, match=r"is async; pass a plain function|is str, not a function"):
        CallableSink(function)


def test_what_turns_out_to_be_async_is_not_taken_for_done() -> None:
    with pytest.raises(TypeError, match="returned an awaitable"):
        CallableSink(lambda records: keep_later(records)).write([score()])
