"""Several draws of one prompt stay several, also with LangChain's caches."""

import asyncio

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import get_llm_cache, set_llm_cache

from ragstone import ResponseRelevancy, Sample
from ragstone.testing import FakeEmbedder

from .scripted import WRAPPERS, PlainChat, Script, TextModel, Told, ToolChat

SAMPLE = Sample(user_input="Who?", response="She did.")


@pytest.fixture
def cache():
    before = get_llm_cache()
    cache = InMemoryCache()
    set_llm_cache(cache)
    yield cache
    set_llm_cache(before)


def drawing() -> Script:
    """Each time it is asked, it asks something else."""
    script = Script(lambda request: {"questions": [{"question": f"Q{next(script.calls)}?", "noncommittal": False}]})
    return script


@pytest.mark.parametrize("how", ["score", "ascore"])
@pytest.mark.parametrize("kind", ["chat with tools", "chat without tools", "text model", "with_retry", "with_config"])
def test_a_global_cache_keeps_the_draws_apart(cache: InMemoryCache, kind: str, how: str) -> None:
    script = drawing()
    judge = Told(WRAPPERS[kind](script), script)
    metric = ResponseRelevancy(llm=judge, embedder=FakeEmbedder(), sampling="n_calls")

    def questions() -> list[str]:
        outcome = metric.score(SAMPLE) if how == "score" else asyncio.run(metric.ascore(SAMPLE))
        return [verdict.text for verdict in outcome.verdicts]

    first = questions()
    assert sorted(first) == ["Q0?", "Q1?", "Q2?"]
    assert questions() == first, "the second time each draw comes from the cache"
    assert next(script.calls) == 3


@pytest.mark.parametrize("model", [PlainChat, ToolChat])
def test_no_provider_sees_which_draw_it_is(model) -> None:
    script = drawing()
    metric = ResponseRelevancy(
        llm=Told(model(script=script), script), embedder=FakeEmbedder(), sampling="n_calls", strictness=4
    )
    metric.score(SAMPLE)
    assert len(set(script.asked)) == 1


def test_a_text_model_is_told_which_draw_it_is() -> None:
    prompts = []

    class Listens(TextModel):
        def _call(self, prompt, *args, **kwargs):
            prompts.append(prompt)
            return super()._call(prompt, *args, **kwargs)

    script = drawing()
    metric = ResponseRelevancy(
        llm=Told(Listens(script=script), script), embedder=FakeEmbedder(), sampling="n_calls", strictness=3
    )
    metric.score(SAMPLE)
    assert sorted(prompt.rstrip().rpartition("\n")[2] for prompt in prompts)[:2] == ["(Draw 2.)", "(Draw 3.)"]
    assert len(set(prompts)) == 3


def test_tokens_of_a_cached_reply_without_counts_are_not_known(cache: InMemoryCache) -> None:
    class Uncounted(PlainChat):
        def say(self, messages, kwargs):
            said = super().say(messages, kwargs)
            return said.model_copy(update={"usage_metadata": None})

    script = drawing()
    metric = ResponseRelevancy(llm=Told(Uncounted(script=script), script), embedder=FakeEmbedder(), strictness=1)
    for _ in range(2):
        usage = metric.score(SAMPLE).usage
        assert (usage.input_tokens, usage.output_tokens) == (None, None)
