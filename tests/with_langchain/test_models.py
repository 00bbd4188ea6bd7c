"""LangChain's models as judges: the core's contract, and the same outcome through each kind of model."""

import asyncio
import copy
import pickle
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from pydantic import Field

from ragstone import LLM, Embedder, LLMRequest, ResponseRelevancy, Sample, Usage
from ragstone.testing import EmbedderContract, FakeEmbedder, FakeLLM, LLMContract
from ragstone_langchain import LangChainEmbedder, LangChainLLM

from ..core.judges import metrics, truth  # noqa: TID252
from .scripted import NO_TOKENS, TOKENS, WRAPPERS, AsyncChat, PlainChat, Script, SyncChat, Told, ToolChat, message

SAMPLE = Sample(
    user_input="It has word1 here. Which say word1?",
    retrieved_contexts=["It has word1 here. It has word2 here.", "Nothing else."],
    response="It has word1 here.",
)


@pytest.mark.parametrize("kind", WRAPPERS)
class TestEveryKind(LLMContract):
    """The core's contract, for each kind of model."""

    @pytest.fixture(autouse=True)
    def _made(self, kind: str) -> None:
        script = Script(lambda request: "yes" if request.choices else {"answer": "yes"})
        self.made = Told(WRAPPERS[kind](script), script)

    def llm(self) -> LLM:
        return self.made


def counted(request):
    reply = FakeLLM(truth).generate(request)
    return type(reply)(reply.text, *TOKENS)


def plain(outcome, *, tokens=True):
    usage = outcome.usage.model_copy(update={"seconds": 0.0})
    if not tokens:
        usage = usage.model_copy(update={"input_tokens": None, "output_tokens": None})
    return outcome.model_copy(update={"usage": usage})


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("kind", WRAPPERS)
def test_same_outcome_through_every_kind_of_model(kind: str, asking: str) -> None:
    tokens = kind not in NO_TOKENS
    for core in metrics(counted, asking):
        script = Script(truth)
        through = type(core)(**{**vars(core), "llm": Told(WRAPPERS[kind](script), script, asking=asking)})
        expected = plain(core.score(SAMPLE), tokens=tokens)
        assert expected.value is not None
        assert plain(through.score(SAMPLE), tokens=tokens) == expected
        assert plain(asyncio.run(through.ascore(SAMPLE)), tokens=tokens) == expected


@pytest.mark.parametrize("kind", NO_TOKENS)
def test_tokens_that_nobody_counted_are_not_known(kind: str) -> None:
    script = Script(truth)
    metric = ResponseRelevancy(llm=Told(WRAPPERS[kind](script), script), embedder=FakeEmbedder())
    assert metric.score(SAMPLE).usage == Usage(
        llm_calls=1, embed_calls=1, input_tokens=None, output_tokens=None, seconds=metric.score(SAMPLE).usage.seconds
    ).model_copy(update={"seconds": pytest.approx(0, abs=60)})


class TestEmbeddings(EmbedderContract):
    """The core's contract, for embeddings."""

    def embedder(self) -> Embedder:
        return LangChainEmbedder(DeterministicFakeEmbedding(size=8))


class Places(Embeddings):
    """Embeddings that put queries elsewhere than passages, as many do."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("questions are compared with questions: no query prefix")


@pytest.mark.parametrize("how", ["score", "ascore"])
def test_all_questions_are_embedded_as_documents_in_one_call(how: str) -> None:
    embeddings, script = Places(), Script(truth)
    metric = ResponseRelevancy(llm=Told(ToolChat(script=script), script), embedder=LangChainEmbedder(embeddings))
    outcome = metric.score(SAMPLE) if how == "score" else asyncio.run(metric.ascore(SAMPLE))
    assert outcome.usage.embed_calls == 1
    assert [len(texts) for texts in embeddings.calls] == [4]


class AsyncPlaces(Places):
    """Embeddings with an async half only."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return [[float(len(text)), 1.0] for text in texts]


def test_async_only_embeddings_work_in_both() -> None:
    embedder = LangChainEmbedder(AsyncPlaces())
    expected = np.asarray([[1.0, 1.0], [2.0, 1.0]], dtype=np.float32)
    assert (embedder.embed(["a", "bb"]) == expected).all()
    assert (asyncio.run(embedder.aembed(["a", "bb"])) == expected).all()


def test_sync_calls_of_an_async_only_model_share_one_loop() -> None:
    script = Script(lambda request: "yes")
    model = AsyncChat(script=script)
    judge = Told(model, script)
    request = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))
    assert [judge.generate(request).text for _ in range(3)] == ["yes"] * 3
    assert len(model.loops) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("gpt-5", "model: str is no LangChain model; pass a chat model"),
        (FakeLLM(truth), "model: FakeLLM is no LangChain model"),
        (DeterministicFakeEmbedding(size=2), "model: DeterministicFakeEmbedding is no LangChain model"),
        (None, "model: NoneType is no LangChain model"),
    ],
)
def test_what_is_no_model_is_refused_when_made(given, message) -> None:
    with pytest.raises(TypeError, match=message):
        LangChainLLM(given)


def test_what_embeds_nothing_is_refused_when_made() -> None:
    with pytest.raises(TypeError, match="embeddings: FakeListChatModel has no embed_documents to call; pass LangChain"):
        LangChainEmbedder(FakeListChatModel(responses=[]))


def test_a_class_is_no_embeddings() -> None:
    with pytest.raises(TypeError, match="embeddings: Places has no embed_documents to call"):
        LangChainEmbedder(Places)


def test_vectors_of_different_lengths_are_for_the_metric_to_refuse() -> None:
    class Ragged(Places):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0] * (i + 1) for i in range(len(texts))]

    script = Script(truth)
    metric = ResponseRelevancy(llm=Told(ToolChat(script=script), script), embedder=LangChainEmbedder(Ragged()))
    for outcome in (metric.score(SAMPLE), asyncio.run(metric.ascore(SAMPLE))):
        assert outcome.reason == "judge_unparseable"


@pytest.mark.parametrize("kind", ["async only", "sync only", "chat with tools"])
def test_a_judge_can_be_copied_and_pickled_also_after_it_was_used(kind: str) -> None:
    model = {"async only": PickledAsync, "sync only": PickledSync, "chat with tools": Pickled}[kind]()
    judge = LangChainLLM(model)
    request = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))
    for _ in range(2):
        for copied in (pickle.loads(pickle.dumps(judge)), copy.deepcopy(judge)):
            assert copied.generate(request).text == asyncio.run(copied.agenerate(request)).text == "yes"
        judge.generate(request)
        asyncio.run(judge.agenerate(request))


class Pickled(PlainChat):
    script: Any = None

    def say(self, messages, kwargs):
        return message("yes")


class PickledAsync(Pickled, AsyncChat):
    pass


class PickledSync(Pickled, SyncChat):
    pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"asking": "all"}, "asking: 'all' is not one of 'together', 'one_by_one'"),
        ({"timeout": 0}, "timeout: 0 is not a number of seconds above 0"),
        ({"timeout": "1"}, "timeout: '1' is not"),
        ({"timeout": True}, "timeout: True is not"),
        ({"timeout": float("nan")}, "timeout: nan is not"),
        ({"max_input_tokens": 0}, "max_input_tokens: 0 is not a whole number of at least 1"),
    ],
)
def test_options_out_of_range_are_refused_when_made(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        LangChainLLM(FakeListChatModel(responses=["yes"]), **options)


class Named(PlainChat):
    model_name: str = "gpt-x"
    profile: dict[str, int] = Field(default={"max_input_tokens": 4_096})


class TestWhatTheModelSaysOfItself:
    @pytest.mark.parametrize(
        "wrap",
        [
            lambda m: m,
            lambda m: m.with_retry(),
            lambda m: m.with_fallbacks([m]),
            lambda m: m.bind(stop=["x"]),
            lambda m: m | RunnableLambda(lambda x: x),
        ],
    )
    def test_its_name_and_its_limit(self, wrap) -> None:
        judge = LangChainLLM(wrap(Named(script=None)))
        assert judge.model == "gpt-x"
        assert judge.max_input_tokens == 4_096
        assert repr(judge) == "LangChainLLM('gpt-x')"

    def test_the_user_knows_better(self) -> None:
        judge = LangChainLLM(Named(script=None), name="mine", max_input_tokens=99)
        assert (judge.model, judge.max_input_tokens) == ("mine", 99)

    def test_one_without_a_name_has_its_class(self) -> None:
        assert LangChainLLM(PlainChat(script=None).with_retry()).model == "PlainChat"
        assert LangChainLLM(PlainChat(script=None)).max_input_tokens is None
        assert LangChainEmbedder(Places()).model == "Places"
        assert repr(LangChainEmbedder(Places(), name="p")) == "LangChainEmbedder('p')"


def test_the_model_object_is_never_changed() -> None:
    script = Script(truth)
    model = ToolChat(script=script, temperature=0.3, n=1, callbacks=[], tags=["app"], metadata={"a": 1})
    before = {name: getattr(model, name) for name in type(model).model_fields}
    copies = {name: (list(v) if isinstance(v, list) else v) for name, v in before.items()}
    for core in metrics(truth):
        metric = type(core)(**{**vars(core), "llm": Told(model, script)})
        metric.score(SAMPLE)
        asyncio.run(metric.ascore(SAMPLE))
    after = {name: getattr(model, name) for name in type(model).model_fields}
    assert all(after[name] is before[name] for name in before)
    assert {name: (list(v) if isinstance(v, list) else v) for name, v in after.items()} == copies


def test_what_answers_with_something_else_is_an_error_that_says_so() -> None:
    judge = LangChainLLM(RunnableLambda(lambda prompt: {"parsed": 1}))
    with pytest.raises(TypeError, match="the model answered with dict, not with a message or text: pass the model its"):
        judge.generate(LLMRequest("demo.ask", "", "Is it?", {}))
