"""What makes a LlamaIndex judge for a journal: the settings of the model object, and no key."""

import json
from typing import Any

from llama_index.core import MockEmbedding, Settings
from llama_index.core.llms import MockLLM
from pydantic import Field

from ragstone.batch.journal.keys import judge_key
from ragstone_llama_index import LlamaIndexEmbedder, LlamaIndexLLM


class Remote(MockLLM):
    """Has the fields of the models that LlamaIndex' packages for servers have."""

    api_base: str = "http://me:s3cret@127.0.0.1:1/v1"
    api_key: str = "s3cret"
    temperature: float = 0.1
    timeout: float = 60.0
    default_headers: dict[str, str] = Field(default_factory=lambda: {"Authorization": "Bearer s3cret"})
    additional_kwargs: dict[str, Any] = Field(default_factory=dict)


def key(**settings):
    return judge_key(LlamaIndexLLM(Remote().model_copy(update=settings)))


def test_each_setting_makes_another_judge():
    keys = [
        key(),
        key(api_base="http://127.0.0.1:2/v1"),
        key(temperature=0.5),
        key(additional_kwargs={"extra_body": {"top_k": 3}}),
        key(max_tokens=9),
        judge_key(LlamaIndexLLM(MockLLM())),
        judge_key(LlamaIndexLLM(Remote(), structured=True)),
    ]
    assert len(set(keys)) == len(keys)
    assert key(api_key="another", timeout=9.0, system_prompt="The app's, which the judge never sees.") == keys[0]
    assert "s3cret" not in json.dumps(LlamaIndexLLM(Remote()).identity)


def test_the_one_of_the_settings_counts_as_it_is(monkeypatch):
    judge, embedder = LlamaIndexLLM(), LlamaIndexEmbedder()
    monkeypatch.setattr(Settings, "_llm", Remote(), raising=False)
    monkeypatch.setattr(Settings, "_embed_model", MockEmbedding(embed_dim=3), raising=False)
    assert judge_key(judge) == key()
    assert judge_key(embedder) == judge_key(LlamaIndexEmbedder(MockEmbedding(embed_dim=3)))
    assert judge_key(embedder) != judge_key(LlamaIndexEmbedder(MockEmbedding(embed_dim=4)))
