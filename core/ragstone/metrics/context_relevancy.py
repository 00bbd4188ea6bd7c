"""ContextRelevancy: how much of the retrieved text the question needs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar, Literal

from ragstone.judge import Embedder
from ragstone.judging import (
    Answer,
    BadReply,
    CannotScore,
    Flow,
    both,
    each,
    embed,
    listing,
    one_line,
    record,
    tokens,
    whole,
)
from ragstone.metrics.asking import ask_items, listed
from ragstone.metrics.base import FOLLOW_UP, ItemKind
from ragstone.metrics.claims import SplittingMetric
from ragstone.metrics.fitted import SENTENCES
from ragstone.metrics.values import by_odds, cosines_to_first, expected_share, log_odds, reworded, share_of, verdicts_of
from ragstone.outcome import Evidence, Score, Verdict
from ragstone.sample import Sample, SampleField

_CHOOSE = (
    "Choose from retrieved sentences those that are needed to answer a question: the fewest that together hold the "
    "answer. Sentences merely on the topic are not needed."
)
_PASSAGE = "Does the passage help to answer the question?"
_WORDS = {"yes": "relevant", "no": "irrelevant"}
_SENTENCE = "Is this sentence of the passage needed to answer the question?"
# Tokens of "[12] " and the line break.
_SENTENCE_OVERHEAD = 3
# Tokens of instructions, fences and reminder, generously.
_PROMPT_OVERHEAD = 200
# A longer context is judged piece by piece, as long as the passages of the rows it was fitted on.
_PASSAGE_TOKENS = 500


def against_best(passages: Sequence[Answer]) -> list[Answer]:
    """Weigh passages against the best of several, where each alone is more likely not to hold the answer.

    An answer that takes two passages is in neither, so a judge says no of each. The odds of all are then divided by
    the best one's, which become 1. A single passage stays as it is, and so do answers without odds.

    Example:
        >>> best, other = Answer("no", {"yes": 0.4, "no": 0.6}), Answer("no", {"yes": 0.25, "no": 0.75})
        >>> [round(answer.probability("yes"), 2) for answer in against_best([best, other])]
        [0.5, 0.33]
    """
    odds = [answer.probabilities for answer in passages if answer.probabilities is not None]
    best = max(odds, key=lambda one: one["yes"], default={"yes": 0.0, "no": 0.0})
    if len(odds) < len(passages) or len(odds) == 1 or not 0.0 < best["yes"] < best["no"]:
        return list(passages)
    return [by_odds(one["yes"] * best["no"], one["no"] * best["yes"]) for one in odds]


def joined(sentence: Answer, passage: Answer) -> Answer:
    """Return yes where sentence and passage together say so: their odds multiplied; without odds, where both say yes.

    Example:
        >>> joined(Answer("yes", {"yes": 0.6, "no": 0.4}), Answer("no", {"yes": 0.25, "no": 0.75})).choice
        'no'
    """
    if sentence.probabilities is None or passage.probabilities is None:
        return Answer("yes" if sentence.choice == passage.choice == "yes" else "no")
    # Both are 0 where the one is certain of yes and the other of no.
    return by_odds(*(sentence.probabilities[word] * passage.probabilities[word] for word in ("yes", "no")))


def best_of_chunks(sentences: Sequence[Evidence], answers: Sequence[Answer]) -> Mapping[int | None, float]:
    """Return the highest probability of yes among the sentences of each chunk."""
    best: dict[int | None, float] = {}
    for sentence, answer in zip(sentences, answers, strict=True):
        best[sentence.chunk] = max(best.get(sentence.chunk, 0.0), answer.probability("yes") or 0.0)
    return best


@dataclass(frozen=True, kw_only=True)
class ContextRelevancy(SplittingMetric):
    """Share of the retrieved sentences that the question needs; higher is better.

        score = relevant sentences / all sentences                        (granularity="sentence")
              = chunks with a relevant sentence / all chunks              (granularity="chunk")

    The contexts are split into sentences first; the judge names the ones that are needed to answer
    `user_input`. A low score means padding: retrieval that brings more than the answer takes.

    Asked one by one, with probabilities and an embedder, the judge says of each context (of pieces of a long one)
    whether it holds the answer, and the embedder ranks the sentences: a small judge knows the one and hardly the other.
    A logistic map of the judge's log-odds and two cosines with the question, that of the sentence and that of the
    sentence behind the one before it, decides; its weights were fitted on human labels (`ragstone.metrics.fitted`).

    Asked one by one without an embedder, the judge says of each sentence whether it is needed, too: a sentence is
    relevant when the odds of the two, multiplied, are above 1 (without probabilities: when both are answered yes).
    Where none of several contexts is likely to hold the answer by itself, their odds are taken relative to the best
    one's: it may take two of them together.

    Args:
        llm: The judge. See `Metric` for the options that all metrics share. Here `scoring="auto"` is always "count",
            which agrees better with people. With `scoring="expected"` a chunk counts with its most probable sentence.
        granularity: The unit that is counted; both shares are in the breakdown.
        language: Of the contexts, for splitting them; None: by their script.
        splitter: Another sentence splitter.
        embedder: Asked once per sample, when items are asked about one by one. None: the embedded one, where the judge
            is embedded; otherwise none.

    Returns:
        A score within [0, 1]. Breakdown: `sentence`, `chunk`; `sentence_expected`, `chunk_expected` where
        there are probabilities; `cosine_least`, the lowest cosine, where an embedder ranks. Verdicts: each sentence,
        "relevant" or "irrelevant", with chunk index and offsets as evidence; one by one also each passage that was
        judged, "yes" or "no", whose id names its sentences ("1-4").

    Source:
        ragas 0.1.10, "Context Relevancy" (Es et al. 2023, arXiv 2309.15217, section 3).

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [2]}))
        >>> outcome = metric.score(Sample(user_input="Who wrote Emma?",
        ...                               retrieved_contexts=["It is long. Jane Austen wrote Emma."]))
        >>> outcome.value, outcome.verdicts[1].evidence[0].start
        (0.5, 12)
    """

    name: ClassVar[str] = "context_relevancy"
    asks: ClassVar[str] = "How much of the contexts does the question need?"
    costs: ClassVar[Mapping[str, str]] = {"sentence": "the contexts hold text that the question does not need"}
    version: ClassVar[str] = "5"
    required_fields: ClassVar[Sequence[SampleField]] = ("user_input", "retrieved_contexts")
    has_expected: ClassVar[bool] = True
    auto_expects: ClassVar[bool] = False
    follows_history: ClassVar[bool] = True
    prompts: ClassVar[Mapping[str, str]] = FOLLOW_UP | {
        "sentences": _CHOOSE,
        "sentence": _SENTENCE,
        "passage": _PASSAGE,
    }

    granularity: Literal["sentence", "chunk"] = "sentence"
    embedder: Embedder | str | object | None = None

    @cached_property
    def judge_embedder(self) -> Embedder | None:
        """The embedder, where it ranks the sentences."""
        return super().judge_embedder if self.has_probabilities and self.judge_writes else None

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The sentences."""
        return (ItemKind("sentence", "Is it needed to answer the question?", ("relevant", "irrelevant"), "text"),)

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:
        """Return the share of relevant sentences, or of chunks that have one."""
        sentences = [verdict for verdict in verdicts if verdict.kind == "sentence"]
        if options["granularity"] == "sentence":
            return share_of(sentences, "sentence", "relevant")
        hit = {verdict.evidence[0].chunk for verdict in sentences if verdict.verdict == "relevant"}
        return len(hit) / len(sample.retrieved_contexts) if sentences else None

    def _flow(self, sample: Sample) -> Flow[Score]:
        question = sample.user_input or ""
        sentences = yield from self.sentences(sample, "retrieved_contexts")
        if not sentences:
            raise CannotScore("undefined", "retrieved_contexts: the splitter found no sentences (0 of 0)")
        judged: list[Verdict] = []
        cosines: list[float] = []
        if self.asks_one_by_one:
            answers, judged, cosines = yield from self._one_by_one(question, sentences, sample)
        else:
            batches = self._batches(question, sentences)
            chosen = set[int]().union(*(yield from each([self._ids(question, *batch) for batch in batches])))
            yes, no = Answer("yes"), Answer("no")
            answers = [yes if i in chosen else no for i in range(len(sentences))]

        chunks = len(sample.retrieved_contexts)
        relevant = [answer.choice == "yes" for answer in answers]
        hit = {sentence.chunk for sentence, needed in zip(sentences, relevant, strict=True) if needed}
        spared = hit if self.granularity == "chunk" else set[int | None]()
        breakdown = {"sentence": sum(relevant) / len(sentences), "chunk": len(hit) / chunks}
        if cosines:
            breakdown["cosine_least"] = min(cosines)
        by_judge = None
        if (expected := expected_share(answers, "yes")) is not None:
            breakdown["sentence_expected"] = expected
            breakdown["chunk_expected"] = sum(best_of_chunks(sentences, answers).values()) / chunks
            by_judge = breakdown[f"{self.granularity}_expected"]
        verdicts = verdicts_of(
            "sentence",
            [sentence.text for sentence in sentences],
            [reworded(answer, _WORDS, sentence) for answer, sentence in zip(answers, sentences, strict=True)],
            "relevant",
            [not one and sentence.chunk not in spared for one, sentence in zip(relevant, sentences, strict=True)],
        )
        return self._score(
            self.value_of(verdicts, sample, {"granularity": self.granularity}),
            f"The question needs {sum(relevant)} of {len(sentences)} sentences, from {len(hit)} of {chunks} contexts.",
            expected=by_judge,
            breakdown=breakdown,
            verdicts=[*verdicts, *judged],
        )

    def _ids(self, question: str, first: int, batch: Sequence[Evidence]) -> Flow[set[int]]:
        def read(ids: Sequence[int]) -> set[int]:
            if len(set(ids)) != len(ids):
                raise BadReply("one id appears twice")
            return {i - 1 for i in ids}

        return self.ask_json(
            "sentences",
            {"question": question, "sentences": listed(batch, first)},
            "List the numbers of the sentences needed to answer the question, none if the answer is not there.",
            record(ids=listing(whole(first, first + len(batch) - 1))),
            lambda value: read(value["ids"]),
        )

    def _one_by_one(
        self, question: str, sentences: Sequence[Evidence], sample: Sample
    ) -> Flow[tuple[list[Answer], list[Verdict], list[float]]]:
        """Decide on each sentence, and give the verdicts on the passages, and the cosines, where some were taken."""
        texts = [sentence.text for sentence in sentences]
        if not self.judge_writes:
            whole = {"question": question, "passage": "\n\n".join(sample.retrieved_contexts)}
            answers = yield from ask_items(self, "sentence", whole, texts, kind="sentence")
            return answers, [], []
        passages = self._passages(question, sentences, sample)
        runs, cosines = list(passages.values()), list[float]()
        asking = ask_items(self, "passage", {"question": question}, list(passages), kind="passage")
        if self.judge_embedder is None:
            of_each: list[Flow[list[Answer]]] = []
            for passage, run in passages.items():
                data = {"question": question, "passage": passage}
                of_each.append(ask_items(self, "sentence", data, [texts[i] for i in run], kind="sentence"))
            asked, each_asked = yield from both(asking, each(of_each))
            answers = _by_passages(asked, runs, each_asked)
        else:
            asked, vectors = yield from both(asking, embed([question, *texts, *_with_previous(sentences)]))
            cosines = cosines_to_first(vectors, 2 * len(texts))
            answers = _by_cosines(asked, runs, cosines)
        return answers, [_verdict(answer, run, sentences) for answer, run in zip(asked, runs, strict=True)], cosines

    def _passages(self, question: str, sentences: Sequence[Evidence], sample: Sample) -> dict[str, list[int]]:
        """Return the passages to judge, each with the numbers of its sentences: a context, or a run of its sentences.

        Equal passages are one.
        """
        limit = min(_PASSAGE_TOKENS, max(1, self.input_limit - _PROMPT_OVERHEAD - tokens(question)))
        passages: dict[str, list[int]] = {}
        for number, members in groupby(range(len(sentences)), key=lambda i: sentences[i].chunk):
            chunk, inside = sample.retrieved_contexts[number or 0], list(members)
            if tokens(chunk) <= limit:
                passages.setdefault(chunk, []).extend(inside)
                continue
            for run in _runs([tokens(sentences[i].text) for i in inside], limit):
                first, last = inside[run.start], inside[run.stop - 1]
                passage = chunk[sentences[first].start : sentences[last].end]
                passages.setdefault(passage, []).extend(range(first, last + 1))
        return passages

    def _batches(self, question: str, sentences: Sequence[Evidence]) -> Iterator[tuple[int, Sequence[Evidence]]]:
        """Cut the numbered sentences into runs that fit a prompt: (number of the first, the run)."""
        limit = self.input_limit - _PROMPT_OVERHEAD - tokens(question)
        sizes = [tokens(one_line(sentence.text)) + _SENTENCE_OVERHEAD for sentence in sentences]
        for run in _runs(sizes, limit):
            yield run.start + 1, sentences[run.start : run.stop]


def _by_passages(asked: Sequence[Answer], runs: Sequence[list[int]], own: Sequence[list[Answer]]) -> list[Answer]:
    """The answers on all sentences in their order: each sentence's own, joined with its passage's."""
    decided: dict[int, Answer] = {}
    for of_passage, run, answers in zip(against_best(asked), runs, own, strict=True):
        for i, answer in zip(run, answers, strict=True):
            decided[i] = joined(answer, of_passage)
    return [decided[i] for i in range(len(decided))]


def _with_previous(sentences: Sequence[Evidence]) -> Iterator[str]:
    """Each sentence behind the one before it in its context."""
    for i, sentence in enumerate(sentences):
        follows = i > 0 and sentences[i - 1].chunk == sentence.chunk
        yield f"{sentences[i - 1].text} {sentence.text}" if follows else sentence.text


def _by_cosines(asked: Sequence[Answer], runs: Sequence[list[int]], cosines: Sequence[float]) -> list[Answer]:
    """The answers on all sentences by the fitted map, from their passage's answer and their two cosines."""
    odds = {i: log_odds(answer) for answer, run in zip(asked, runs, strict=True) for i in run}
    signals = [
        {"passage": odds[i], "cosine": cosines[i], "with_previous": cosines[len(odds) + i]} for i in range(len(odds))
    ]
    return SENTENCES.answers(signals)


def _verdict(answer: Answer, run: Sequence[int], sentences: Sequence[Evidence]) -> Verdict:
    """The verdict on a passage of a run of sentences."""
    return Verdict(
        id=f"{run[0] + 1}-{run[-1] + 1}",
        kind="passage",
        text=f"context {(sentences[run[0]].chunk or 0) + 1}",
        verdict=answer.choice,
        probability=answer.probability("yes"),
    )


def _runs(sizes: Sequence[int], limit: int) -> Iterator[range]:
    """Cut items into runs that keep to a limit; one that does not fit is a run by itself."""
    first, taken = 0, 0
    for i, size in enumerate(sizes):
        if i > first and taken + size > limit:
            yield range(first, i)
            first, taken = i, 0
        taken += size
    yield range(first, len(sizes))
