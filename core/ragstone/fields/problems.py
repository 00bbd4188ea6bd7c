"""What is wrong with fields that a user names or gives, in the user's words."""

from collections.abc import Mapping

from pydantic import ValidationError

from ragstone.fields.names import FIELDS


def other_way_round(named: Mapping[object, object]) -> str:
    """How to write names of fields that stand behind the keys in place of before them; "" where none does.

    Example:
        >>> other_way_round({"q": "user_input", "response": "a"})
        "write it the other way round: {'user_input': 'q', 'response': 'a'}"
    """
    known: tuple[object, ...] = FIELDS
    wrong = [key for key, field in named.items() if key not in known and field in known]
    right = {named[key] if key in wrong else key: key if key in wrong else named[key] for key in named}
    return f"write it the other way round: {right}" if wrong else ""


def first_problem(error: ValidationError, names: Mapping[str, str] | None = None) -> str:
    """The problem of the first field that was refused, called as the user calls it.

    Example:
        >>> from ragstone import Sample
        >>> try:
        ...     Sample(retrieved_contexts=["Emma.", 3])
        ... except ValidationError as error:
        ...     first_problem(error, {"retrieved_contexts": "contexts"})
        'contexts[1]: is int, not text (str)'
    """
    first = error.errors(include_url=False, include_input=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    # A problem without a location is of the whole.
    if not first["loc"]:
        return message
    name, *at = map(str, first["loc"])
    return f"{(names or {}).get(name, name)}{''.join(f'[{i}]' for i in at)}: {message}"
