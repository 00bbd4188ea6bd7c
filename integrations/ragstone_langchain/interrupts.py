"""LangGraph's ways to stop, resume and steer a graph, told apart with no import of LangGraph."""

import sys


def is_interrupt(error: BaseException) -> bool:
    """Say whether an error stops a graph until someone resumes it.

    Example:
        >>> is_interrupt(ValueError("boom"))
        False
    """
    return _is("langgraph.errors", "GraphInterrupt", error)


def is_steering(error: BaseException) -> bool:
    """Say whether an error is one of those with which LangGraph steers graphs, interrupts among them."""
    return _is("langgraph.errors", "GraphBubbleUp", error)


def is_command(value: object) -> bool:
    """Say whether a graph was given a command, such as to resume, instead of something to answer."""
    return _is("langgraph.types", "Command", value)


def _is(module: str, name: str, value: object) -> bool:
    # Whoever has made one has imported it.
    wanted: object = getattr(sys.modules.get(module), name, None)
    return isinstance(wanted, type) and isinstance(value, wanted)
