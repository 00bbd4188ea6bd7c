"""Checks of a metric's options when it is made: wrong ones are refused before the first sample."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from ragstone.judging.prompt import sendable


def check_option(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a value that is none of the allowed words.

    Raises:
        ValueError: Names the option, the value and the words.
    """
    if value not in allowed:
        raise ValueError(f"{name}: {value!r} is not one of {', '.join(map(repr, allowed))}")


def check_count(name: str, value: object) -> None:
    """Refuse what is no whole number of at least 1.

    Raises:
        ValueError: Names the option and the value.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: {value!r} is not a whole number of at least 1")


def check_number(name: str, value: object, least: float, most: float) -> None:
    """Refuse what is no number within the bounds, both included.

    Raises:
        ValueError: Names the option, the value and the bounds.
    """
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}: {value!r} is not a number from {least:g} to {most:g}")


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False.

    Raises:
        ValueError: Names the option and the value.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name}: {value!r} is not True or False")


def check_members(name: str, value: object, members: Sequence[str], instead: str) -> None:
    """Refuse an object that lacks one of the members, or is a class in place of an object.

    Raises:
        TypeError: Names what is missing, and what to pass instead.
    """
    kind = type(value).__name__
    if isinstance(value, type):
        raise TypeError(f"{name}: is the class {value.__name__}, not an object of it: write {value.__name__}(...)")
    if missing := [member for member in members if not hasattr(value, member)]:
        raise TypeError(f"{name}: {kind} has no {', '.join(missing)}; {instead}")


def check_instructions(instructions: object, prompts: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the instructions that a user gave, by step.

    Raises:
        TypeError: They are no mapping, or one is no text.
        ValueError: A step is unknown, or an instruction is blank.
    """
    if not isinstance(instructions, Mapping):
        raise TypeError(f"instructions: is {type(instructions).__name__}; pass a mapping from step to text")
    checked: dict[str, str] = {}
    for step, text in cast("Mapping[str, object]", instructions).items():
        if step not in prompts:
            raise ValueError(f"instructions: {step!r} is no step; there are {', '.join(prompts) or 'none to replace'}")
        if not isinstance(text, str):
            raise TypeError(f"instructions[{step!r}]: is {type(text).__name__}, not text (str)")
        if not text.strip():
            raise ValueError(f"instructions[{step!r}]: is blank")
        checked[step] = text
    return checked


def check_questions(name: str, questions: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return questions that a user gave as a tuple, None for None.

    Raises:
        TypeError: It is one text, or something in it is no text.
        ValueError: It is empty, or a question is blank.
    """
    if questions is None:
        return None
    if isinstance(questions, str):
        raise TypeError(f"{name}: is one str; pass a list of questions")
    checked = tuple(questions)
    if not checked:
        raise ValueError(f"{name}: is empty; pass None to have questions made from the source")
    for i, question in enumerate(cast("tuple[object, ...]", checked)):
        if not isinstance(question, str):
            raise TypeError(f"{name}[{i}]: is {type(question).__name__}, not text (str)")
        if not question.strip():
            raise ValueError(f"{name}[{i}]: is blank")
    return tuple(map(sendable, checked))
