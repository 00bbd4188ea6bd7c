"""The requests of a metric to a judge: for texts, for one of a few words, or about items."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeVar, cast

from ragstone.errors import CannotScore
from ragstone.judge import LLM, DecisionRequest, Judge, LLMReply, LLMRequest, WriterRequest
from ragstone.judge_names import NullJudge
from ragstone.judging.flow import Flow, ask, each
from ragstone.judging.prompt import DATA_NOTICE, fence, filled, numbered, tokens
from ragstone.judging.reply import (
    Answer,
    BadReply,
    Form,
    Schema,
    as_shares,
    json_form,
    listing,
    one_of,
    parse,
    record,
    whole,
)
from ragstone.metrics.fitted import Fitted
from ragstone.metrics.models import JUDGE, WRITER, decides
from ragstone.metrics.values import log_odds
from ragstone.options import Count, Text
from ragstone.outcome import Evidence

T = TypeVar("T")
Words = tuple[str, ...]
MOST_ITEMS = 50
"""The most verdicts of one call; of more, a provider may cut the reply, and all of them would be lost."""
DEFAULT_MAX_INPUT_TOKENS = 100_000
_YES_NO: Words = ("yes", "no")
_NO_JUDGE = NullJudge()


@dataclass(frozen=True, kw_only=True, slots=True)
class Details:
    """Further details of a request for a JSON value.

    Attributes:
        fill: The text for each {NAME} in the instructions.
        writes: Whether the reply is texts, which the writer writes where there is one.
        whose: The name in the request's task, where several metrics ask the same.
        temperature: Above 0 where several different draws are wanted.
        sample_index: Which draw it is.
    """

    fill: Mapping[str, str] | None = None
    writes: bool = False
    whose: str = ""
    temperature: float = 0.0
    sample_index: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemDetails:
    """Further details of a question about items.

    Attributes:
        alone: The step, when items are asked about one by one; "": the same.
        task: What to do with all {n} of them; "": answer each from the text alone.
        reply: The name of the reply to all.
        sentences: Of the text. The judge that is asked about all points to some by number, as evidence.
        item_first: Whether an item that is asked about by itself stands before the texts.
    """

    alone: str = ""
    task: str = ""
    reply: str = "answers"
    sentences: Sequence[Evidence] | None = None
    item_first: bool = False


WRITTEN = Details(writes=True)
_PLAIN = Details()
_ITEMS = ItemDetails()


@dataclass(frozen=True)
class Asker:
    """Who is asked for a metric, and how: the part of `ragstone.Metric` that asks; options and facts stand there."""

    name: ClassVar[str]
    prompts: ClassVar[Mapping[str, str]] = {}
    examples: ClassVar[Mapping[str, str]] = {}
    has_expected: ClassVar[bool] = False
    auto_expects: ClassVar[bool] = True

    llm: Judge | str | object | None = JUDGE
    _: KW_ONLY
    writer: LLM | str | object | None = WRITER
    asking: Literal["auto", "together", "one_by_one"] = "auto"
    scoring: Literal["auto", "count", "expected"] = "auto"
    max_input_tokens: Count | None = None
    instructions: Mapping[str, Text] = field(default_factory=dict[str, str], hash=False)

    @cached_property
    def judge(self) -> Judge:
        """The judge: `llm`, which may have been a name; one that cannot be asked where there is none."""
        return _NO_JUDGE if self.llm is None else cast("Judge", self.llm)

    @cached_property
    def judge_writes(self) -> bool:
        """Whether the judge writes texts; a decision model does not."""
        return not decides(self.llm)

    @cached_property
    def claims_only(self) -> bool:
        """Whether the judge takes a text and a claim, and no other question."""
        return getattr(self.llm, "claims_only", False) is True

    @cached_property
    def has_writer(self) -> bool:
        """Whether anybody writes texts: the writer, or the judge."""
        return self.judge_writes or self.writer is not None

    @cached_property
    def asks_one_by_one(self) -> bool:
        """Whether each item gets a call of its own, by `asking` and by what suits the judge."""
        # A decision model does not say what suits it.
        own: object = getattr(self.judge, "asking", "one_by_one")
        return (own if self.asking == "auto" else self.asking) == "one_by_one"

    @cached_property
    def writes_alone(self) -> bool:
        """Whether what writes reads a prompt's texts first, as an LLM that is asked one by one does."""
        return self.asks_one_by_one if self.writer is None else cast("LLM", self.writer).asking == "one_by_one"

    @cached_property
    def has_probabilities(self) -> bool:
        """Whether each answer comes with probabilities, by what the judge declares."""
        return self.asks_one_by_one and (
            not self.judge_writes or getattr(self.llm, "gives_probabilities", False) is True
        )

    @cached_property
    def expects(self) -> bool:
        """Whether the value is the expected one, by `scoring` or by what the judge declares."""
        if self.scoring != "auto" or not self.has_expected:
            return self.scoring == "expected"
        return self.has_probabilities and self.auto_expects

    @cached_property
    def input_limit(self) -> int:
        """The most estimated tokens of a prompt."""
        if self.max_input_tokens is not None:
            return self.max_input_tokens
        own = getattr(self.llm, "max_input_tokens", None)
        return own if isinstance(own, int) else DEFAULT_MAX_INPUT_TOKENS

    @cached_property
    def changed_prompts(self) -> Mapping[str, str]:
        """The user's own instructions, of the steps whose instructions they change."""
        return {step: text for step, text in self.instructions.items() if text != self.prompts.get(step)}

    def choice(
        self,
        step: str,
        data: Mapping[str, str],
        reminder: str,
        choices: Words,
        *,
        item: Mapping[str, str] | None = None,
        item_first: bool = False,
    ) -> LLMRequest | DecisionRequest:
        """Build a request whose answer is one of `choices`.

        Args:
            step: The part of the task behind the metric's name, a key of `prompts`.
            data: The texts of the question, by name; the longest text that requests share first.
            reminder: For a prompt, what stands behind the data: what to do, in short, and the form of the reply.
            choices: The answers.
            item: What is asked about, by name: a decision model reads it in the question, an LLM behind the data.
            item_first: Whether an LLM reads it before the data.

        Raises:
            CannotScore: "over_budget" when it is longer than the judge takes.
        """
        item = item or {}
        if self.judge_writes:
            texts = {**item, **data} if item_first else {**data, **item}
            return self.request(step, texts, "", Form(_word_schema(choices), reminder, choices))
        # Loaded when first used.
        from ragstone.judging.decisions import one_question

        request = one_question(f"{self.name}.{step}", data, self._instructions(step), item, choices)
        self._check_size(step, data, *request.texts_read)
        return request

    def ask_choice(self, request: LLMRequest | DecisionRequest) -> Flow[Answer]:
        """Ask for one of the request's choices.

        Raises:
            CannotScore: "undefined" when the judge gives no probabilities, which the value takes or it declares;
                "judge_unparseable" when there is no answer that can be used.
        """
        if isinstance(request, LLMRequest):
            return ask(request, partial(self._read_choice, request))
        if self.claims_only:
            from ragstone.judging.checkers import ask_claim

            return ask_claim(request, cast("Any", self.llm).most_tokens)
        from ragstone.judging.decisions import ask_question

        return ask_question(request)

    def ask_word(
        self,
        step: str,
        data: Mapping[str, str],
        words: Words = _YES_NO,
        item: Mapping[str, str] | None = None,
        *,
        item_first: bool = False,
    ) -> Flow[Answer]:
        """Ask the question of a step for one of the words; `item` as for `choice`."""
        reminder = f"Reply with one word: {', '.join(words[:-1])} or {words[-1]}."
        return self.ask_choice(self.choice(step, data, reminder, words, item=item, item_first=item_first))

    def ask_json(
        self,
        step: str,
        data: Mapping[str, str],
        task: str,
        form: Form | Schema,
        read: Callable[[Any], T],
        details: Details = _PLAIN,
    ) -> Flow[T]:
        """Ask for a JSON value of a form: its schema is sent to the judge, checks the reply and writes the example.

        Args:
            step: The part of the task behind the metric's name, a key of `prompts`.
            data: The app's texts, by name; the longest text that requests share first.
            task: What to do, in short, which a judge that is asked together reads behind the data; the form of the
                reply is said behind it.
            form: Of the reply: a schema (`ragstone.judging.record`, `listing`, ...), or what `json_form` makes of one.
            read: Makes the result of the reply's value; raises `BadReply` where the schema does not suffice.
            details: The rest: `ragstone.metrics.asking.WRITTEN` for texts, which the writer writes.

        Raises:
            CannotScore: "over_budget", or "judge_unparseable" when the second reply cannot be read either.
        """
        if not self.has_writer:
            raise TypeError(f"writer: is None; {self.name}.{step} asks for what a decision model does not write")
        of = form if isinstance(form, Form) else json_form(form)
        return ask(self.request(step, data, task, of, details), lambda reply: read(parse(reply.text, of.schema)))

    def request(
        self, step: str, data: Mapping[str, str], task: str, form: Form | Schema, details: Details = _PLAIN
    ) -> LLMRequest:
        """Build a prompt: instructions, fenced data, task; asked one by one fenced data and instructions.

        A judge that is asked one by one reads the beginning that requests share only once: the texts, then. Of a bare
        schema, whose form no sentence says, it reads the task in place of this sentence. Arguments as for `ask_json`.

        Raises:
            CannotScore: "over_budget" when it is longer than the judge takes.
        """
        if not isinstance(form, Form):
            task, form = "", Form(form, task)
        instructions = self._instructions(step)
        if details.fill:
            instructions = filled(instructions, details.fill)
        written = details.writes or not self.judge_writes
        if self.writes_alone if written else self.asks_one_by_one:
            examples = "" if step in self.changed_prompts else self.examples.get(step, "")
            system, user = DATA_NOTICE + examples, f"{fence(data)}\n{instructions} {form.asked}"
        else:
            asked = f"{task} {form.asked}" if task else form.asked
            system, user = f"{instructions}\n{DATA_NOTICE}", f"{fence(data)}\n{asked}"
        self._check_size(step, data, system, user)
        return (WriterRequest if written and self.writer is not None else LLMRequest)(
            task=f"{details.whose or self.name}.{step}",
            system=system,
            user=user,
            schema=form.schema,
            temperature=details.temperature,
            sample_index=details.sample_index,
            choices=form.choices,
        )

    def _instructions(self, step: str) -> str:
        instructions = self.instructions.get(step) or self.prompts.get(step)
        if instructions is None:
            raise TypeError(f"{type(self).__name__}.prompts: has no instructions for the step {step!r}")
        return instructions

    def _check_size(self, step: str, data: Mapping[str, str], *texts: str) -> None:
        if (size := tokens(*texts)) > self.input_limit:
            raise CannotScore(
                "over_budget",
                f"{', '.join(data)}: the prompt of {self.name}.{step} has about {size:,} tokens; "
                f"the limit is {self.input_limit:,} (max_input_tokens)",
            )

    def _read_choice(self, request: LLMRequest, reply: LLMReply) -> Answer:
        choices = request.choices or ()
        if reply.text not in choices:
            raise BadReply(f"it is not exactly one of: {', '.join(choices)}")
        if reply.probabilities is not None:
            return Answer(reply.text, as_shares(reply.probabilities, choices))
        if self.expects or self.has_probabilities:
            why = "it declares them" if self.has_probabilities else "use scoring='count'"
            missing = f"the judge {self.judge.model!r} gave no probabilities for {request.task}; {why}"
            raise CannotScore("undefined", missing)
        return Answer(reply.text)


def ask_items(
    metric: Asker,
    step: str,
    texts: Mapping[str, str],
    items: Sequence[str],
    words: Words = _YES_NO,
    *,
    kind: str = "question",
    details: ItemDetails = _ITEMS,
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
        details: The rest.
    """
    if metric.asks_one_by_one:
        step = details.alone or step
        flows = [metric.ask_word(step, texts, words, {kind: item}, item_first=details.item_first) for item in items]
        return (yield from each(flows))
    name, *_ = texts
    task, sentences = details.task or f"Answer each of the {{n}} {kind}s from the {name} alone", details.sentences
    if sentences is None:
        task = f"{task}: {', '.join(words[:-1])} or {words[-1]}."
    else:
        task = f"{task}. evidence: numbers of the {name}'s sentences that show it, [] if none."
    if len(items) > MOST_ITEMS:
        # A list without end is refused as a whole, not asked about in thousands of calls.
        metric.request(step, {**texts, f"{kind}s": numbered(items)}, task, {})
    calls: list[Flow[list[Answer]]] = []
    for at in range(0, len(items), MOST_ITEMS):
        part = items[at : at + MOST_ITEMS]
        call = metric.ask_json(
            step,
            {**texts, f"{kind}s": numbered(part, at + 1)},
            filled(task, {"n": str(len(part))}),
            _items_form(details.reply, len(part), words, None if sentences is None else len(sentences), at + 1),
            lambda value: answers_in(value[details.reply], sentences),
        )
        calls.append(call)
    if len(calls) == 1:
        return (yield from calls[0])
    return [answer for answers in (yield from each(calls)) for answer in answers]


def by_map(metric: Asker, fitted: Fitted, answers: Sequence[Answer], **signals: float) -> list[Answer]:
    """Answers of yes or no with the probabilities of a map of their log-odds, its first signal.

    They stay as they are where one has no probabilities, and if a decision model gave them, on which no map was fitted.

    Args:
        metric: Whose judge answered.
        fitted: The map.
        answers: The answers.
        signals: The map's other signals.
    """
    if not metric.judge_writes or any(answer.probabilities is None for answer in answers):
        return list(answers)
    first = next(iter(fitted.weights))
    return fitted.answers([{first: log_odds(answer), **signals} for answer in answers])


@lru_cache(maxsize=64)
def _word_schema(words: Words) -> Schema:
    return one_of(words)


@lru_cache(maxsize=256)
def _items_form(reply: str, items: int, words: Words, sentences: int | None, first: int) -> Form:
    """The form of an answer to each item; it is the same for all texts with so many items and sentences."""
    schema = record(**{reply: form_of(items, words, sentences, first)})
    return json_form(schema, **({reply: "ANSWER"} if sentences is None else {}))


def form_of(items: int, words: Words, sentences: int | None, first: int = 1) -> Schema:
    """The schema of an answer to each item, by its number."""
    one = one_of(words) if sentences is None else pointing_form(words, sentences)
    return record(**{str(i): one for i in range(first, first + items)})


def pointing_form(words: Words, sentences: int) -> Schema:
    """The schema of an answer with the numbers of those of so many sentences that show it."""
    return record(evidence=listing(whole(1, sentences)), verdict=one_of(words))


def answers_in(value: Mapping[str, Any], sentences: Sequence[Evidence] | None) -> list[Answer]:
    """The answers of a reply of `form_of`, in the order of the items."""
    replies = [value[number] for number in sorted(value, key=int)]
    return [Answer(each) if sentences is None else pointing(each, sentences) for each in replies]


def pointing(answer: Mapping[str, Any], sentences: Sequence[Evidence]) -> Answer:
    """An answer of `pointing_form`; its evidence are the sentences that it names, each once."""
    numbers: set[int] = set(answer["evidence"])
    return Answer(answer["verdict"], evidence=tuple([sentences[number - 1] for number in sorted(numbers)]))


def listed(sentences: Sequence[Evidence], first: int = 1) -> str:
    """The sentences as numbered lines, with a blank line between chunks."""
    lines: list[str] = []
    for _, block in groupby(sentences, key=attrgetter("chunk")):
        texts = [sentence.text for sentence in block]
        lines.append(numbered(texts, first))
        first += len(texts)
    return "\n\n".join(lines)
