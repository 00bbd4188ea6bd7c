"""LangChain's models as judges: the core's contract, the same outcome through each kind, draws, time-outs, identity."""

import asyncio
import copy
import pickle
import warnings
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import Field

from ragstone import LLM, ContextRelevancy, Embedder, LLMReply, LLMRequest, Monitor, ResponseRelevancy, Sample, evaluate
from ragstone.identity import judge_key
from ragstone.testing import EmbedderContract, FakeEmbedder, FakeLLM, LLMContract
from ragstone_langchain import LangChainEmbedder, LangChainLLM

from .scripted import TOKENS, WRAPPERS, AsyncChat, PlainChat, Script, ToolChat, message

ASKED = {"question": "Which?", "noncommittal": False}
WORD = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))
SAMPLE = Sample(
    user_input="It has word1 here. Which say word1?",
    retrieved_contexts=["It has word1 here. It has word2 here.", "Nothing else."],
    response="It has word1 here.",
)


@pytest.mark.parametrize("kind", ["chat with tools", "async only"])
class TestEachHalf(LLMContract):
    """The core's contract, for models with both halves, and with one only."""

    @pytest.fixture(autouse=True)
    def _made(self, kind: str) -> None:
        self.made = LangChainLLM(
            WRAPPERS[kind](Script(lambda user: "yes" if "one word" in user else {"answer": "yes"}))
        )

    def llm(self) -> LLM:
        return self.made


def test_a_monitor_warns_of_a_model_with_an_async_half_alone() -> None:
    both, alone = RunnableLambda(str, asyncio.sleep), RunnableLambda(asyncio.sleep)
    for model, warned in ((PlainChat(), 0), (both, 0), (alone, 1), (alone.with_retry(), 1)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Monitor(ContextRelevancy(llm=LangChainLLM(model)))
        said = [str(each.message).startswith("LangChainLLM has async methods only") for each in caught]
        assert said == [True] * warned


def plain(outcome, *, tokens=True):
    unknown = {} if tokens else {"input_tokens": None, "output_tokens": None}
    return outcome.model_copy(update={"usage": outcome.usage.model_copy(update={"seconds": 0.0, **unknown})})


@pytest.mark.parametrize("kind", WRAPPERS)
def test_same_outcome_through_every_kind_of_model(kind: str) -> None:
    for asking, reply in (("together", '{"ids": [1]}'), ("one_by_one", "yes")):
        core = ContextRelevancy(llm=FakeLLM(lambda _, reply=reply: LLMReply(reply, *TOKENS), asking=asking))
        expected = plain(core.score(SAMPLE), tokens=kind != "text model")
        assert expected.value is not None
        through = ContextRelevancy(llm=LangChainLLM(WRAPPERS[kind](Script(reply)), asking=asking))
        assert plain(through.score(SAMPLE)) == plain(asyncio.run(through.ascore(SAMPLE))) == expected


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


def test_all_questions_are_embedded_as_documents_in_one_call() -> None:
    embeddings, judge = Places(), LangChainLLM(ToolChat(script=Script({"questions": [ASKED] * 3})))
    metric = ResponseRelevancy(llm=judge, embedder=LangChainEmbedder(embeddings))
    for outcome in (metric.score(SAMPLE), asyncio.run(metric.ascore(SAMPLE))):
        assert outcome.usage.embed_calls == 1
    assert [len(texts) for texts in embeddings.calls] == [4, 4]


def test_async_only_embeddings_work_in_both() -> None:
    class AsyncPlaces(Places):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise NotImplementedError

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[float(len(text)), 1.0] for text in texts]

    embedder, expected = LangChainEmbedder(AsyncPlaces()), [[1.0, 1.0], [2.0, 1.0]]
    assert embedder.embed(["a", "bb"]).tolist() == asyncio.run(embedder.aembed(["a", "bb"])).tolist() == expected
    model = AsyncChat(script=Script("yes"))
    judge = LangChainLLM(model)
    assert [judge.generate(WORD).text for _ in range(3)] == ["yes"] * 3
    assert len(model.loops) == 1, "sync calls share one loop"


class BothHalves(AsyncChat):
    """A chat model with both halves, whose async one belongs to the loop that it is called on."""

    _generate = PlainChat._generate


def test_no_second_loop_awaits_a_model_and_evaluate_s_own_loop_never_does() -> None:
    model = BothHalves(script=Script({"ids": [1]}))
    evaluate([SAMPLE], [ContextRelevancy(llm=LangChainLLM(model))], progress=False)
    assert model.loops == set(), "connections of a loop that ends would stay open"

    async def on_two_loops() -> int:
        for _ in range(2):  # each time another wrapper of the same object
            metric = ContextRelevancy(llm=LangChainLLM(model))
            await metric.ascore(SAMPLE)
            await asyncio.to_thread(asyncio.run, metric.ascore(SAMPLE))
        return id(asyncio.get_running_loop())

    home = asyncio.run(on_two_loops())
    assert model.loops == {home}


REFUSED = [
    (lambda: LangChainLLM("gpt-5"), "model: str is not a LangChain model; pass a chat model"),
    (lambda: LangChainEmbedder(Places), "embeddings: Places has no embed_documents; pass LangChain embeddings"),
    (lambda: LangChainLLM(MODEL, asking="all"), "asking: 'all' should be 'together' or 'one_by_one'"),
    (lambda: LangChainLLM(MODEL, gives_probabilities=1), "gives_probabilities: 1 should be a valid boolean"),
    (lambda: LangChainLLM(MODEL, max_input_tokens=0), "max_input_tokens: 0 should be greater than or equal to 1"),
]


def test_what_cannot_work_is_refused_when_made() -> None:
    for make, said in REFUSED:
        with pytest.raises((TypeError, ValueError), match=said):
            make()


MODEL = FakeListChatModel(responses=["yes"])


class Pickled(PlainChat):
    def say(self, messages, kwargs):
        return message("yes")


class PickledAsync(Pickled, AsyncChat):
    pass


@pytest.mark.parametrize("model", [Pickled, PickledAsync])
def test_a_judge_can_be_copied_and_pickled_also_after_it_was_used(model) -> None:
    judge = LangChainLLM(model())
    judge.generate(WORD)
    asyncio.run(judge.agenerate(WORD))
    for copied in (pickle.loads(pickle.dumps(judge)), copy.deepcopy(judge)):
        assert copied.generate(WORD).text == asyncio.run(copied.agenerate(WORD)).text == "yes"


class Named(PlainChat):
    model_name: str = "gpt-x"
    profile: dict[str, int] = Field(default={"max_input_tokens": 4_096})


def test_what_the_model_says_of_itself() -> None:
    bare = Named()
    sequence = bare | RunnableLambda(lambda x: x)
    for model in (bare, bare.with_retry(), bare.with_fallbacks([bare]), bare.bind(stop=["x"]), sequence):
        assert (LangChainLLM(model).model, LangChainLLM(model).max_input_tokens) == ("gpt-x", 4_096)
    judge = LangChainLLM(bare, name="mine", max_input_tokens=99)
    assert (judge.model, judge.max_input_tokens) == ("mine", 99), "the user knows better"
    nameless = LangChainLLM(PlainChat().with_retry())
    assert (nameless.model, nameless.max_input_tokens) == ("PlainChat", None)
    assert LangChainEmbedder(Places()).model == "Places"


def test_what_answers_with_something_else_is_an_error_that_says_so() -> None:
    judge = LangChainLLM(RunnableLambda(lambda prompt: {"parsed": 1}))
    with pytest.raises(TypeError, match="the model answered with dict, not a message or text; pass the model"):
        judge.generate(LLMRequest("demo.ask", "", "Is it?", {}))


# --- several draws of one prompt -------------------------------------------------------------------------------------

DRAWN = Sample(user_input="Who?", response="She did.")


@pytest.fixture
def cache():
    before = get_llm_cache()
    set_llm_cache(InMemoryCache())
    yield
    set_llm_cache(before)


def drawing(make, **options) -> tuple[Script, ResponseRelevancy]:
    """A judge that asks something else each time."""
    script = Script(lambda user: {"questions": [{**ASKED, "question": f"Q{next(script.calls)}?"}]})
    options = {"sampling": "n_calls", **options}
    return script, ResponseRelevancy(llm=LangChainLLM(make(script)), embedder=FakeEmbedder(), **options)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("kind", ["chat with tools", "text model", "with_retry"])
def test_a_global_cache_keeps_the_draws_apart(kind: str) -> None:
    script, metric = drawing(WRAPPERS[kind])
    first, again = ([verdict.text for verdict in metric.score(DRAWN).verdicts] for _ in range(2))
    assert sorted(first) == ["Q0?", "Q1?", "Q2?"]
    assert again == first, "the second time each draw comes from the cache"
    assert next(script.calls) == 3


def test_a_chat_model_s_provider_sees_no_draw() -> None:
    script, metric = drawing(lambda script: ToolChat(script=script), strictness=4)
    metric.score(DRAWN)
    assert (len(script.asked), len(set(script.asked))) == (4, 1)


def test_a_cancelled_call_ends_at_once() -> None:
    class Waiting(PlainChat):
        begun: Any

        async def _agenerate(self, *args, **kwargs):
            self.begun.set()
            await asyncio.Event().wait()

    async def cancelled() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(LangChainLLM(Waiting(begun=begun)).agenerate(WORD))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())


# --- what makes a judge, for a journal: model, address and what is declared ------------------------------------------


def test_model_address_and_declared_identity_make_a_judge():
    def chat(**settings):
        return ChatOpenAI(**{"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": "s3cret", **settings})

    def embeddings(**settings):
        return OpenAIEmbeddings(**{"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": "s3cret", **settings})

    judges = [
        LangChainLLM(chat()),
        LangChainLLM(chat(model="n")),
        LangChainLLM(chat(base_url="http://127.0.0.1:2/v1")),
        LangChainLLM(chat().bind(extra_body={"top_k": 3}), identity="top 3"),
        LangChainEmbedder(embeddings()),
        LangChainEmbedder(embeddings(base_url="http://127.0.0.1:2/v1")),
        LangChainEmbedder(embeddings(dimensions=3), identity="3"),
    ]
    assert len(set(map(judge_key, judges))) == len(judges)
    assert judge_key(LangChainLLM(chat(api_key="another", timeout=3).bind(stop=["x"]))) == judge_key(judges[0])
