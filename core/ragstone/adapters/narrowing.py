"""A draft's contexts are narrowed to what the answering call read, and off the app's thread where a monitor has one."""

from dataclasses import replace
from typing import Any

from ragstone.adapters.answering import ModelCall, texts_read
from ragstone.adapters.runs import Draft


def narrowed(draft: Draft) -> Draft:
    """A draft whose contexts are what the answering call read; as it is where that is not known. With their ids."""
    return _with_ids(_narrowed(draft))


def _with_ids(draft: Draft) -> Draft:
    """A draft with the ids of its contexts' sources; without, where one of them has none."""
    sample = draft.sample
    if draft.ids is None or {"retrieved_ids", "retrieved_contexts"} & sample.model_fields_set != {"retrieved_contexts"}:
        return draft
    ids = [draft.ids.get(text) for text in sample.retrieved_contexts]
    if None in ids:
        return draft
    return replace(draft, sample=sample.model_copy(update={"retrieved_ids": tuple(ids)}))


def _narrowed(draft: Draft) -> Draft:
    searched, sample = draft.searched, draft.sample
    if searched is None or not searched.is_choice:
        return replace(draft, searched=None)
    found, passed_on = searched.compared or searched.found, searched.passed_on
    read = texts_read(found, searched.calls, sample.response or "", sample.user_input or "", passed_on)
    if read is None:
        return replace(draft, searched=None)
    standing = {*read}
    kept = [text for text, compared in zip(searched.found, found, strict=True) if compared in standing]
    others = [text for text in read if text not in found]
    source = f"{len(kept)} of {len(found)} that searches returned"
    if others:
        source += f", {len(others)} that steps passed on"
    return replace(
        draft,
        sample=sample.model_copy(update={"retrieved_contexts": (*kept, *others)}),
        read_from={**draft.read_from, "retrieved_contexts": source},
        searched=None,
    )


def with_answer(draft: Draft, text: str) -> Draft:
    """A draft whose answer came piece by piece: what models had not said when it was read is that answer."""
    searched, sample = draft.searched, draft.sample.model_copy(update={"response": text})
    if searched is not None:
        calls = [each if each.said else ModelCall(each.prompt, [text]) for each in searched.calls]
        searched = replace(searched, calls=calls)
    return replace(draft, sample=sample, searched=searched)


def submit(monitor: Any, draft: Draft) -> None:  # noqa: ANN401 - a monitor, or what stands in for one
    """Hand over a draft's sample, narrowed on a thread of the monitor's, so that the app does not wait for it.

    Where the monitor has no thread for it the app's does it; where too much waits the sample stays as it is.
    """
    later = getattr(monitor, "later", None)
    searched = draft.searched
    if searched is None or not searched.is_choice:
        _hand_over(monitor, draft)
    elif later is None:
        _hand_over_narrowed(monitor, draft)
    elif not later(lambda: _hand_over_narrowed(monitor, draft), size=searched.size):
        _hand_over(monitor, draft)


def _hand_over_narrowed(monitor: Any, draft: Draft) -> None:  # noqa: ANN401
    try:
        draft = narrowed(draft)
    finally:
        # Whatever became of it, no sample is lost.
        _hand_over(monitor, draft)


def _hand_over(monitor: Any, draft: Draft) -> None:  # noqa: ANN401
    draft = _with_ids(draft)
    monitor.submit(draft.sample)
    if (count := getattr(monitor, "count_fields", None)) is not None:
        count(draft.read_from, draft.names, draft.likely)
