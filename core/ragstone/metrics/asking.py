"""Asking about items over shared texts: all in one call, each in its own, or a decision model in one request."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from ragstone.judging import Answer, Flow, each, listing, numbered, one_of, record, whole
from ragstone.judging.prompt import filled
from ragstone.judging.reply import Schema
from ragstone.metrics.base import Metric
from ragstone.metrics.fitted import Fitted
from ragstone.metrics.values import log_odds
from ragstone.outcome import Evidence

MOST_ITEMS = 50
"""The most verdicts of one call; of more, a provider may cut the reply, and all of them would be lost."""


def by_map(
    metric: Metric, fitted: Fitted | None, answers: Sequence[Answer], more: Mapping[str, float] | None = None
) -> list[Answer]:
    """Return answers of yes or no with the probabilities of a map of their log-odds, its first signal.

    They stay as they are without a map, where one has no probabilities, and if a decision model gave them, on which no
    map was fitted.

    Args:
        metric: Whose judge answered.
        fitted: The map.
        answers: The answers.
        more: The map's other signals.
    """
    if fitted is None or metric.decides or any(answer.probabilities is None for answer in answers):
        return list(answers)
    signal = next(iter(fitted.weights))
    return fitted.answers([{signal: log_odds(answer), **(more or {})} for answer in answers])


def ask_word(
    metric: Metric,
    step: str,
    data: Mapping[str, str],
    words: tuple[str, ...] = ("yes", "no"),
    item: Mapping[str, str] | None = None,
    *,
    item_first: bool = False,
) -> Flow[Answer]:
    """Ask the question of a step for one of the words; `item` as for `Metric.choice`."""
    reply = f"Reply with one word: {', '.join(words[:-1])} or {words[-1]}."
    return metric.ask_choice(metric.choice(step, data, reply, words, item=item, item_first=item_first))


def ask_items(
    metric: Metric,
    step: str,
    texts: Mapping[str, str],
    items: Sequence[str],
    words: tuple[str, ...] = ("yes", "no"),
    *,
    kind: str = "question",
    alone: str | None = None,
    task: str | None = None,
    reply: str = "answers",
    sentences: Sequence[Evidence] | None = None,
    item_first: bool = False,
    fitted: Fitted | None = None,
    more: Mapping[str, float] | None = None,
) -> Flow[list[Answer]]:
    """Ask about each item over shared texts, as suits the judge.

    An LLM is asked about all in one call, of 50 at most, or about each in its own, which begins with the texts, so that
    it reads them once. A decision model gets all questions in one request.

    Args:
        metric: Whose prompts and judge.
        step: The step, when all are asked together.
        texts: What the items are asked of, by what the prompt calls it.
        items: The questions, claims or passages.
        words: The answers to choose from.
        kind: What the prompt calls an item.
        alone: The step, when they are asked one by one; None: the same.
        task: What to do with all {n} of them; None: answer each from the text alone.
        reply: What the reply to all is called.
        sentences: Of the text. The judge that is asked about all points to some by number, as evidence.
        item_first: Whether one that is asked by itself stands before the texts.
        fitted: A map of the probabilities of those that are.
        more: The map's other signals.
    """
    if metric.asks_one_by_one:
        step = alone or step
        asking = [ask_word(metric, step, texts, words, {kind: item}, item_first=item_first) for item in items]
        return by_map(metric, fitted, (yield from each(asking)), more)
    name, *_ = texts
    task = task or f"Answer each of the {{n}} {kind}s from the {name} alone"
    if sentences is None:
        task = f"{task}: {', '.join(words[:-1])} or {words[-1]}."
    else:
        task = f"{task}. evidence: numbers of the {name}'s sentences that show it, [] if none."
    if len(items) > MOST_ITEMS:  # a list without end is refused as a whole, not asked about in thousands of calls
        metric.request(step, {**texts, f"{kind}s": numbered(items)}, task, {})
    calls: list[Flow[list[Answer]]] = []
    for at in range(0, len(items), MOST_ITEMS):
        part = items[at : at + MOST_ITEMS]
        call = metric.ask_json(
            step,
            {**texts, f"{kind}s": numbered(part, at + 1)},
            filled(task, {"n": str(len(part))}),
            record(**{reply: form_of(len(part), words, sentences, at + 1)}),
            lambda value: answers_in(value[reply], sentences),
            names={reply: "ANSWER"} if sentences is None else None,
        )
        calls.append(call)
    return [answer for answers in (yield from each(calls)) for answer in answers]


def form_of(items: int, words: tuple[str, ...], sentences: Sequence[Evidence] | None, first: int = 1) -> Schema:
    """Return the schema of an answer to each item, by its number."""
    one = one_of(words) if sentences is None else pointing_form(words, sentences)
    return record(**{str(i): one for i in range(first, first + items)})


def pointing_form(words: tuple[str, ...], sentences: Sequence[Evidence]) -> Schema:
    """Return the schema of an answer with the numbers of sentences that show it."""
    return record(evidence=listing(whole(1, len(sentences))), verdict=one_of(words))


def answers_in(value: Mapping[str, Any], sentences: Sequence[Evidence] | None) -> list[Answer]:
    """Return the answers of a reply of `form_of`, in the order of the items."""
    replies = [value[number] for number in sorted(value, key=int)]
    return [Answer(each) if sentences is None else pointing(each, sentences) for each in replies]


def pointing(answer: Mapping[str, Any], sentences: Sequence[Evidence]) -> Answer:
    """Return an answer of `pointing_form`; its evidence are the sentences that it names, each once."""
    numbers: set[int] = set(answer["evidence"])
    return Answer(answer["verdict"], evidence=tuple([sentences[number - 1] for number in sorted(numbers)]))


def listed(sentences: Sequence[Evidence], first: int = 1) -> str:
    """Return the sentences as numbered lines, with a blank line between chunks."""
    lines: list[str] = []
    for _, block in groupby(sentences, key=attrgetter("chunk")):
        texts = [sentence.text for sentence in block]
        lines.append(numbered(texts, first))
        first += len(texts)
    return "\n\n".join(lines)
