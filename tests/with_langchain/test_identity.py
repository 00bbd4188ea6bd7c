"""What makes a LangChain judge for a journal: every setting of the model object, in every wrapper, and no key."""

import json

from langchain.chat_models import init_chat_model
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from ragstone.keys import judge_key
from ragstone_langchain import LangChainEmbedder, LangChainLLM


def chat(**settings):
    return ChatOpenAI(**{"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": "s3cret", **settings})


def configurable(**settings):
    return init_chat_model("m", model_provider="openai", api_key="s3cret", configurable_fields=("model",), **settings)


DIFFERENT = {
    "plain": chat,
    "url": lambda: chat(base_url="http://127.0.0.1:2/v1"),
    "temperature": lambda: chat(temperature=0.5),
    "model_kwargs": lambda: chat(model_kwargs={"user": "a"}),
    "headers": lambda: chat(default_headers={"X-Variant": "b", "Authorization": "s3cret"}),
    "bound": lambda: chat().bind(extra_body={"top_k": 3}),
    "fallbacks": lambda: chat().with_fallbacks([chat(temperature=0.5)]),
    "other fallbacks": lambda: chat().with_fallbacks([chat(temperature=0.6)]),
    "behind a function": lambda: RunnableLambda(lambda prompt: "a") | chat(),
    "configurable": configurable,
    "configured": lambda: configurable(temperature=0.5),
    "fake": lambda: FakeListChatModel(responses=["a"]),
}


def test_each_setting_makes_another_judge_and_no_key_is_in_it():
    keys = {name: judge_key(LangChainLLM(make(), name="m")) for name, make in DIFFERENT.items()}
    assert len(set(keys.values())) == len(keys)
    assert {name: judge_key(LangChainLLM(make(), name="m")) for name, make in DIFFERENT.items()} == keys
    assert judge_key(LangChainLLM(chat(), name="m", structured_output=False)) != keys["plain"]
    assert "s3cret" not in json.dumps([LangChainLLM(make()).identity for make in DIFFERENT.values()])


def test_what_does_not_change_the_answers_does_not_count():
    other = chat(api_key="another", timeout=3, max_retries=9, tags=["a"], metadata={"a": "b"}, verbose=True)
    assert judge_key(LangChainLLM(other)) == judge_key(LangChainLLM(chat()))


def test_embedders():
    settings = {"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": "s3cret"}
    others = ({}, {"base_url": "http://127.0.0.1:2/v1"}, {"dimensions": 3})
    embedders = [LangChainEmbedder(OpenAIEmbeddings(**{**settings, **other}), name="m") for other in others]
    assert len(set(map(judge_key, embedders))) == len(embedders)
    assert "s3cret" not in json.dumps([each.identity for each in embedders])
