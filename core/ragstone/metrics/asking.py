"""Asking about items over shared texts: all in one call, each in its own, or a decision model in one request."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragstone.judging.flow import Flow, each
from ragstone.judging.prompt import numbered
from ragstone.judging.reply import Answer, listing, one_of, record, whole
from ragstone.metrics.base import Metric
from ragstone.metrics.fitted import Fitted
from ragstone.metrics.values import log_odds
from ragstone.outcome import Evidence


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
    metric: Metric, step: str, data: Mapping[str, str], words: tuple[str, ...] = ("yes", "no")
) -> Flow[Answer]:
    """Ask the question of a step for one of the words."""
    reply = f"Reply with one word: {', '.join(words[:-1])} or {words[-1]}."
    return metric.ask_choice(metric.choice(step, data, reply, words))


def ask_alone(
    metric: Metric,
    step: str,
    data: Mapping[str, str],
    kind: str,
    items: Sequence[str],
    words: tuple[str, ...] = ("yes", "no"),
    *,
    item_first: bool = False,
    fitted: Fitted | None = None,
    more: Mapping[str, float] | None = None,
) -> Flow[list[Answer]]:
    """Ask about each item, which the prompt calls `kind`: an LLM in a call of its own, a decision model in one request.

    An LLM reads the texts first, which it then reads once for all items, unless the item is to come first. `fitted` and
    `more` are those of `by_map`.
    """
    if metric.decides:
        return (yield from metric.decide(metric.decision(step, data, [{kind: item} for item in items], words)))
    prompts = ({kind: item, **data} if item_first else {**data, kind: item} for item in items)
    answers = yield from each([ask_word(metric, step, prompt, words) for prompt in prompts])
    return by_map(metric, fitted, answers, more)


def pointing(verdict: Mapping[str, Any], sentences: Sequence[Evidence]) -> Answer:
    """Return a verdict with the sentences whose numbers it names as evidence, each once."""
    numbers: Sequence[int] = verdict["evidence"]
    return Answer(verdict["verdict"], evidence=tuple(sentences[number - 1] for number in sorted(set(numbers))))


def ask_together(
    metric: Metric,
    step: str,
    data: Mapping[str, str],
    kind: str,
    items: Sequence[str],
    words: tuple[str, ...],
    task: str,
    *,
    sentences: Sequence[Evidence] | None = None,
    reply: str = "answers",
) -> Flow[list[Answer]]:
    """Ask about all items, which the prompt calls `kind`, in one call; the judge may point to sentences by number."""
    ids = [str(i) for i in range(1, len(items) + 1)]
    word = one_of(words)
    one = word if sentences is None else record(evidence=listing(whole(1, len(sentences))), verdict=word)

    read: Callable[[Any], Answer] = Answer if sentences is None else lambda verdict: pointing(verdict, sentences)
    return metric.ask_json(
        step,
        {**data, f"{kind}s": numbered(items)},
        task,
        record(**{reply: record(**dict.fromkeys(ids, one))}),
        lambda value: [read(value[reply][i]) for i in ids],
        names={reply: "ANSWER"} if sentences is None else None,
    )


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
    item_first: bool = False,
    fitted: Fitted | None = None,
) -> Flow[list[Answer]]:
    """Ask about each item over shared texts, as suits the judge: all in one call, or each in its own.

    Args:
        metric: Whose prompts and judge.
        step: The step, when all are asked together.
        texts: What the items are asked of, by what the prompt calls it.
        items: The questions, claims or passages.
        words: The answers to choose from.
        kind: What the prompt calls an item.
        alone: The step, when they are asked one by one; None: the same.
        task: What to do with all of them; None: answer each from the text alone.
        item_first: Whether one that is asked by itself stands before the texts.
        fitted: A map of the probabilities of those that are.
    """
    if metric.asks_one_by_one:
        return ask_alone(metric, alone or step, texts, kind, items, words, item_first=item_first, fitted=fitted)
    task = task or f"Answer each of the {len(items)} {kind}s from the {next(iter(texts))} alone"
    task = f"{task}: {', '.join(words[:-1])} or {words[-1]}."
    return ask_together(metric, step, texts, kind, items, words, task)


def listed(sentences: Sequence[Evidence], first: int = 1) -> str:
    """Return the sentences as numbered lines, with a blank line between chunks."""
    blocks: dict[int | None, list[str]] = {}
    for sentence in sentences:
        blocks.setdefault(sentence.chunk, []).append(sentence.text)
    lines: list[str] = []
    for block in blocks.values():
        lines.append(numbered(block, first))
        first += len(block)
    return "\n\n".join(lines)
