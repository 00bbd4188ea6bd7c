"""Outcomes to a function of yours."""

import functools
import inspect
from typing import TYPE_CHECKING, cast

from ragstone.store.base import Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragstone.store.record import Record


class CallableSink(Sink):
    """Calls a function with the records, a list at a time, on a thread of the monitor's.

    Where it raises, it is called again later with the same records; so it should not mind a record that it has seen.

    Args:
        function: Takes a list of `Record`; what it returns is not looked at. Not async: no event loop runs there.
        name: What tells it from the monitor's other sinks; by default "call:" and the function's name.

    Attributes:
        function: The function.
        name: The name.

    Raises:
        TypeError: `function` cannot be called, or is async.

    Example:
        >>> from ragstone import Unscored
        >>> from ragstone.sinks import Record
        >>> nothing = Unscored(metric="demo", reason="timeout", detail="", version="1")
        >>> found = []
        >>> sink = CallableSink(found.extend)
        >>> sink.write([Record(sample_id="a", outcome=nothing, judge="j", submitted_at=0.0, scored_at=1.5)])
        >>> [record.sample_id for record in found], sink.name
        (['a'], 'call:list.extend')
    """

    def __init__(self, function: "Callable[[list[Record]], object]", name: str | None = None) -> None:
        if not callable(cast("object", function)):
            raise TypeError(f"function: is {type(function).__name__}, which cannot be called; pass a function")
        if _is_async(function):
            raise TypeError(f"function: {_called(function)} is async; pass a plain function (asyncio.run can be in it)")
        self.function = function
        self.name = f"call:{_called(function)}" if name is None else name

    def __repr__(self) -> str:
        return f"CallableSink({self.name!r})"

    def write(self, records: "Sequence[Record]") -> None:
        """Call the function with the records, unless there are none.

        Raises:
            Exception: Whatever the function raises.
            TypeError: It returned something to be awaited, so that nothing has been done.
        """
        if not records:
            return
        result = self.function(list(records))
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError(f"{self.name}: returned something to be awaited; pass a function that does its work itself")


def _is_async(function: object) -> bool:
    asynchronous = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(test(one) for test in asynchronous for one in (function, getattr(function, "__call__", None)))  # noqa: B004


def _called(function: object) -> str:
    while isinstance(function, functools.partial):
        function = cast("functools.partial[object]", function).func
    own = function if hasattr(function, "__qualname__") else type(function)
    module, name = getattr(own, "__module__", None), cast("str", getattr(own, "__qualname__", "function"))
    return name if module is None or module == "__main__" else f"{module}.{name}"
