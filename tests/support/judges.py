"""What the judges of tests say, for `FakeLLM`: the truth, what the schema allows, by probability, later; and half ones."""

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

from ragstone import (
    AlignmentCoverage,
    BaseLLM,
    CitationSupport,
    ContextPrecision,
    ContextRecall,
    ContextRelevancy,
    Criterion,
    FactualCorrectness,
    Faithfulness,
    LLMReply,
    LLMRequest,
    ResponseCompleteness,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
)
from ragstone.testing import FakeEmbedder, FakeLLM

from .openai_server import SURE, embeddings

_OPENING = re.compile(r"<(\w+) ([bcdfghjklmnpqrstvwxz]{4,})>\n")
_LINE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


def mapped(fitted, p: float) -> float:
    """What a map makes of a probability, and of a text of at most 30 tokens where its length counts too."""
    weight, *of_length = fitted.weights.values()
    z = fitted.intercept + weight * math.log(p / (1 - p)) + sum(of_length) * math.log(0.3)
    return 1 / (1 + math.exp(-z))


def step(request: LLMRequest) -> str:
    """The part of the task behind the metric's name."""
    return request.task.split(".")[1]


def fenced(request: LLMRequest) -> tuple[dict[str, str], str]:
    """Read the data of a request back by its nonce: (texts by name, what stands behind them)."""
    rest, data, nonce = request.user, {}, None
    while opening := _OPENING.match(rest):
        name, own = opening.groups()
        assert nonce in (None, own), "two nonces in one prompt"
        assert name not in data, "the same data twice"
        nonce = own
        inside, closing, rest = rest[opening.end() :].partition(f"\n</{name} {nonce}>")
        assert closing, f"{name} is never closed"
        data[name] = inside
        assert rest.startswith("\n"), "no line break behind the fence"
        rest = rest[1:]
    assert nonce, "no fence"
    # A nonce of four letters may be part of a word, as "nstr" is of "instructions"; a fence's end is none.
    assert request.user.count(f" {nonce}>") == 2 * len(data), "the nonce stands outside the fence's own lines"
    assert f" {nonce}>" not in request.system
    return data, rest


def numbered_lines(text: str) -> dict[str, str]:
    """Read numbered items back."""
    return dict(_LINE.findall(text))


def sentences(text: str) -> list[str]:
    """Split the plain prose of these tests: every sentence ends with a full stop."""
    return [sentence.strip() for sentence in re.findall(r"[^.]+\.", text)]


ASKS = "Does it say: "


def says(text: str, question: str) -> str:
    """The true answer to one of the truthful judge's questions: yes, no (it says "Not so: ...") or cannot_tell."""
    fact = question.removeprefix(ASKS)
    if f"Not so: {fact}" in text:
        return "no"
    return "yes" if fact in text else "cannot_tell"


def supported(original: str, claim: str) -> str:
    """The true verdict on a claim."""
    return {"yes": "supported", "no": "contradicted", "cannot_tell": "not_in_source"}[says(original, claim)]


def holds(text: str, claim: str) -> str:
    """Whether a claim is true of a text, yes or no."""
    return "yes" if says(text, claim) == "yes" else "no"


def truth(request: LLMRequest) -> Any:
    """Answer any request of the metrics from the data in it alone. Facts are sentences."""
    data, _ = fenced(request)
    return _ANSWERS[request.task](request, data)


def _items(request: LLMRequest, data: dict[str, str]) -> Any:
    facts = list(dict.fromkeys(sentences(data["text"])))[:10]
    return {"items": [{"keyphrase": fact, "question": ASKS + fact} for fact in facts]}


def _made(request: LLMRequest, data: dict[str, str]) -> Any:
    n = request.schema["properties"]["questions"]["minItems"]
    facts = [*dict.fromkeys(sentences(data["text"])), *(f"Filler {i}." for i in range(n))]
    return {"questions": [ASKS + fact for fact in facts[:n]]}


def _answers(name: str) -> Any:
    def answer(request: LLMRequest, data: dict[str, str]) -> Any:
        words = request.choices or next(iter(request.schema["properties"]["answers"]["properties"].values()))["enum"]

        def one(question: str) -> str:
            given = says(data[name], question)
            return given if given in words else "no"

        if request.choices:
            return one(data["question"])
        return {"answers": {i: one(question) for i, question in numbered_lines(data["questions"]).items()}}

    return answer


def _verdicts(request: LLMRequest, data: dict[str, str]) -> Any:
    text = data.get("original") or data["context"]
    original = numbered_lines(text)
    return {
        "verdicts": {
            i: {
                "verdict": supported(text, claim),
                "evidence": [int(number) for number, sentence in original.items() if claim in sentence],
            }
            for i, claim in numbered_lines(data["claims"]).items()
        }
    }


def _of_two_texts(request: LLMRequest, data: dict[str, str]) -> Any:
    others = {"response": data["reference"], "reference": data["response"]}
    return {
        name: _verdicts(request, {"original": other, "claims": data[f"{name}_claims"]})["verdicts"]
        for name, other in others.items()
    }


def _cited(request: LLMRequest, data: dict[str, str]) -> Any:
    contexts, answers = numbered_lines(data["contexts"]), {}
    for i, item in numbered_lines(data["claims"]).items():
        claim, _, cited = item.rpartition(" (cites ")
        answers[i] = holds("\n".join(contexts[number] for number in re.findall(r"\d+", cited)), claim)
    return {"answers": answers}


def _polite(request: LLMRequest, data: dict[str, str]) -> Any:
    verdict = "no" if "I do not know" in data["response"] else "yes"
    return verdict if request.choices else {"evidence": [1], "verdict": verdict}


def _useful(answer: str, context: str) -> str:
    return "yes" if any(fact in context for fact in sentences(answer)) else "no"


def _relevant(question: str, sentence: str) -> bool:
    return question.removesuffix("?").split()[-1] in sentence


def _questions(request: LLMRequest, data: dict[str, str]) -> Any:
    form = request.schema["properties"]["questions"]
    texts = [f"{data['response']} Question {i}?" for i in range(form["minItems"])]
    if form["items"]["type"] == "string":
        return {"questions": texts}
    evasive = "I do not know" in data["response"]
    return {"questions": [{"question": text, "noncommittal": evasive} for text in texts]}


def _answered(request: LLMRequest, data: dict[str, str]) -> Any:
    def one(part: str) -> str:
        return "yes" if _relevant(part, data["response"]) else "no"

    if request.choices:
        return one(data["question"])
    return {"answers": {i: one(part) for i, part in numbered_lines(data["questions"]).items()}}


_ANSWERS = {
    "history.question": lambda request, data: {"topic": "It", "standalone_question": data["follow_up_question"]},
    "summarization_score.questions": _items,
    "summarization_score.answers": _answers("summary"),
    "summarization_score.answer": _answers("summary"),
    "summarization_score.says": lambda request, data: holds(data["text"], data["claim"]),
    "alignment_coverage.claims": lambda request, data: {"claims": sentences(data["summary"])},
    "alignment_coverage.questions": _made,
    "alignment_coverage.verdicts": _verdicts,
    "alignment_coverage.verdict": lambda request, data: holds(data["text"], data["claim"]),
    "faithfulness.claims": lambda request, data: {"claims": sentences(data["response"])},
    "faithfulness.verdicts": _verdicts,
    "faithfulness.verdict": lambda request, data: holds(data["text"], data["claim"]),
    "context_recall.claims": lambda request, data: {"claims": sentences(data["reference"])},
    "context_recall.verdicts": _verdicts,
    "context_recall.verdict": lambda request, data: holds(data["text"], data["claim"]),
    "factual_correctness.claims": lambda request, data: {name: sentences(text) for name, text in data.items()},
    "factual_correctness.verdicts": _of_two_texts,
    "factual_correctness.verdict": lambda request, data: holds(data["text"], data["claim"]),
    "citation_support.supported": _cited,
    "citation_support.verdict": lambda request, data: holds(data["text"], data["claim"]),
    "context_precision.useful": lambda request, data: {
        "answers": {i: _useful(data["answer"], text) for i, text in numbered_lines(data["contexts"]).items()}
    },
    "context_precision.context": lambda request, data: _useful(data["answer"], data["context"]),
    "polite.verdict": _polite,
    "alignment_coverage.source_answers": _answers("text"),
    "alignment_coverage.source_answer": _answers("text"),
    "alignment_coverage.summary_answers": _answers("text"),
    "alignment_coverage.summary_answer": _answers("text"),
    "response_relevancy.questions": _questions,
    "response_completeness.parts": lambda request, data: {
        "parts": [f"{part.strip()}?" for part in data["question"].split("?") if part.strip()][:8] or ["What?"]
    },
    "response_completeness.answered": _answered,
    "response_completeness.part": _answered,
    "response_relevancy.open": lambda request, data: "no" if "I do not know" in data["response"] else "yes",
    "response_relevancy.refused": lambda request, data: (
        "refused" if "I do not know" in data["response"] else "answered"
    ),
    "context_relevancy.sentences": lambda request, data: {
        "ids": [int(i) for i, s in numbered_lines(data["sentences"]).items() if _relevant(data["question"], s)]
    },
    "context_relevancy.sentence": lambda request, data: (
        "yes" if _relevant(data["question"], data["sentence"]) else "no"
    ),
    "context_relevancy.passage": lambda request, data: (
        "yes" if any(_relevant(data["question"], s) for s in sentences(data["passage"])) else "no"
    ),
}


def filled(schema: dict[str, Any], name: str = "text") -> Any:
    """Return the plainest value that a schema allows, without looking at the prompt."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema["type"]
    if kind == "object":
        assert set(schema["required"]) == set(schema["properties"])
        assert schema["additionalProperties"] is False
        return {key: filled(value, f"{name} {key}") for key, value in schema["properties"].items()}
    if kind == "array":
        least = schema["minItems"]
        size = max(least, 1) if schema.get("maxItems", 1) else 0
        items = schema["items"]
        if items.get("type") == "integer":
            return list(range(items["minimum"], min(items["minimum"] + size, items["maximum"] + 1)))
        return [filled(items, f"{name} {i}") for i in range(size)]
    return {"string": f"Is {name} so?", "boolean": False, "integer": schema.get("minimum", 0)}[kind]


def obliging(request: LLMRequest) -> Any:
    """Answer any request from its schema."""
    return filled(request.schema)


def graded(probabilities: Any) -> Any:
    """Answer choices by probability, given as a function from the request to {choice: p}."""

    def reply(request: LLMRequest) -> LLMReply:
        given = probabilities(request)
        return LLMReply(max(given, key=given.get), 10, 1, given)

    return reply


def served(body: dict[str, Any]) -> Any:
    """What a server answers to any request: the form filled in, else yes with probabilities; vectors by the texts' hashes."""
    if "input" in body:
        return embeddings([[byte / 255 for byte in sha256(str(each).encode()).digest()[:8]] for each in body["input"]])
    if "response_format" in body:
        return json.dumps(filled(body["response_format"]["json_schema"]["schema"]))
    return SURE


class Slow:
    """An async reply that waits first; counts what is in flight and what was cancelled.

    `wait` is a number of seconds, or an async function that gets the request.
    """

    def __init__(self, wait: float | Callable[[LLMRequest], Awaitable[object]] = 1.0, reply: Any = "yes") -> None:
        self.wait, self.reply = wait, reply
        self.in_flight = self.most = self.cancelled = 0
        self.began: list[float] = []  # by the loop's clock

    async def __call__(self, request: LLMRequest) -> Any:
        self.began.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await (self.wait(request) if callable(self.wait) else asyncio.sleep(self.wait))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
        return self.reply(request) if callable(self.reply) else self.reply


class SyncLLM(BaseLLM):
    """A user's judge with the sync half alone."""

    def __init__(self, reply: Any, model: str = "sync", **facts: Any) -> None:
        self.model, self.fake = model, FakeLLM(reply)
        vars(self).update(facts)

    def generate(self, request: LLMRequest, /) -> LLMReply:
        return self.fake.generate(request)


class AsyncLLM(BaseLLM):
    """A user's judge with the async half alone."""

    def __init__(self, reply: Any, model: str = "async", **facts: Any) -> None:
        self.model, self.fake = model, FakeLLM(reply)
        vars(self).update(facts)

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        return await self.fake.agenerate(request)


def metrics(reply: Any, asking: str = "together") -> list[Any]:
    """One of each of the metrics, and of their ways to ask, with a judge of its own."""

    def llm() -> FakeLLM:
        return FakeLLM(reply, asking=asking)

    return [
        SummarizationScore(llm=llm()),
        SummarizationScore(llm=llm(), questions=["Is it so?"]),
        AlignmentCoverage(llm=llm()),
        AlignmentCoverage(
            llm=llm(),
            source="retrieved_contexts",
            assessment_questions=[f"{ASKS}It has word{i} here." for i in range(2)],
        ),
        ResponseRelevancy(llm=llm(), embedder=FakeEmbedder()),
        ResponseRelevancy(llm=llm(), embedder=FakeEmbedder(), sampling="n_calls"),
        ResponseCompleteness(llm=llm()),
        ContextRelevancy(llm=llm()),
        Faithfulness(llm=llm()),
    ]


def all_metrics(reply: Any, asking: str = "together") -> list[Any]:
    """These, and those that need a reference or citations."""

    def llm() -> FakeLLM:
        return FakeLLM(reply, asking=asking)

    return [
        *metrics(reply, asking),
        ContextPrecision(llm=llm()),
        ContextRecall(llm=llm()),
        FactualCorrectness(llm=llm()),
        CitationSupport(llm=llm()),
        Criterion("polite", "Is it so?", llm=llm()),
    ]


def drive(metric: Any, sample: Sample) -> tuple[Any, list[tuple[Any, ...]]]:
    """Run a metric by `.send()` alone: (outcome, the rounds of requests)."""
    flow = metric.flow(sample)
    rounds: list[tuple[Any, ...]] = []
    replies = None
    while True:
        try:
            rounds.append(next(flow) if replies is None else flow.send(replies))
        except StopIteration as stop:
            return stop.value, rounds
        replies = tuple(
            metric.llm.generate(request) if isinstance(request, LLMRequest) else metric.embedder.embed(request.texts)
            for request in rounds[-1]
        )
