"""From a run that has ended to the sample that is scored."""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from ragstone.errors import describe
from ragstone.sample import Sample
from ragstone_langchain.found import answer_of, contexts_used, question_elsewhere, question_given, this_turn
from ragstone_langchain.open_runs import Gathered
from ragstone_langchain.told import to_sample
from ragstone_langchain.values import Unreadable, kind

Extract = Callable[[object, object, Sequence[str]], Sample | Mapping[str, object] | None]
"""A user's own reading of a run: its inputs, its outputs and the texts of the documents that were found in it."""

_ERROR_LENGTH = 200  # characters of an error's message
_OURS = ("name", "tags", "error")  # under these the sample's metadata says what the run was


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Attributes:
        inputs: What it was given.
        outputs: What it returned; None where it failed.
        question: The question, where it was read when the run began.
        error: What the app raised.
    """

    inputs: object
    outputs: object = None
    question: str | None = None
    error: BaseException | None = None


def sample_of(
    gathered: Gathered, ended: Ended, extract: Extract | None = None, retriever_tools: Collection[str] = ()
) -> Sample | None:
    """Return a run's sample; None where the user's function wants none, or where there is nothing in it at all.

    Args:
        gathered: What was gathered of it.
        ended: How it ended.
        extract: The user's function.
        retriever_tools: Names of tools whose messages are contexts.

    Raises:
        Unreadable: The function returned something that is no sample.
    """
    about = about_run(gathered, ended.error)
    run_id = str(gathered.run_id)
    if extract is not None:
        documents = contexts_used(gathered, None, None, ())
        made = _made(extract(ended.inputs, ended.outputs, tuple(documents)))
        if made is None:
            return None
        return made.model_copy(update={"id": made.id or run_id, "metadata": {**about, **made.metadata}})
    inputs, outputs = this_turn(ended.inputs), this_turn(ended.outputs)
    question = question_given(inputs) if ended.question is None else ended.question
    if question is None:
        question = question_elsewhere(outputs, inputs)
    contexts = contexts_used(gathered, inputs, outputs, retriever_tools)
    answer = None if ended.error is not None else answer_of(outputs)
    if ended.error is None and question is None and answer is None and not contexts:
        return None
    return Sample(user_input=question, retrieved_contexts=contexts, response=answer, id=run_id, metadata=about)


def _made(made: object) -> Sample | None:
    if made is None or isinstance(made, Sample):
        return made
    if not isinstance(made, Mapping):
        raise Unreadable(
            f"extract: the function returned {kind(made)}; return a Sample, a mapping of its fields or None"
        )
    return to_sample(cast("Mapping[object, object]", made), "extract")


def about_run(gathered: Gathered, error: BaseException | None = None) -> dict[str, object]:
    """Return a sample's metadata: the run's name, tags and what JSON can hold of its metadata, and the app's error.

    Example:
        >>> from uuid import uuid4
        >>> about_run(Gathered(uuid4(), "rag", ("prod",), {"thread_id": "7", "lock": object()}), ValueError("boom"))
        {'thread_id': '7', 'name': 'rag', 'tags': ['prod'], 'error': 'ValueError: boom'}
    """
    about = {name: held for name, value in gathered.metadata.items() if (held := _plain(value)) is not _NOTHING}
    about = {name: value for name, value in about.items() if name not in _OURS}
    about |= {"name": gathered.name, "tags": list(gathered.tags)}
    if error is not None:
        about["error"] = describe(error, most=_ERROR_LENGTH)
    return about


_NOTHING = object()


def _plain(value: object) -> object:
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (list, tuple, dict)):
        try:
            return json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            return _NOTHING
    return _NOTHING
