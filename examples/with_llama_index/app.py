"""The app under test: an index over a museum's handbook, and an LLM that reads from it. No key needed."""

import re

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import TextNode
from words import WordEmbedder, answer

HANDBOOK = (
    "The museum opens at ten in the morning from Tuesday to Sunday. It is closed on Mondays. On Thursdays it stays "
    "open until nine in the evening.",
    "A ticket costs 12 euros for adults. Children under twelve enter free. The audio guide costs 4 euros more.",
    "Photographs are allowed without flash. Tripods need a written permit from the office. Filming is not allowed.",
    "The cafe is on the ground floor next to the garden. It serves lunch from noon to three. Dogs may come into the "
    "garden but not into the cafe.",
)
QUESTIONS = (
    "How much does a ticket cost for adults?",
    "Until when is the museum open on Thursdays?",
)


class WordEmbedding(BaseEmbedding):
    """Places a text by the words that it holds: near means many words in common."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector: list[float] = WordEmbedder().embed([text])[0].tolist()
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Reader(CustomLLM):
    """Answers with the sentence of the handbook in its prompt that has most words in common with the question.

    Offered a tool, it first calls that with the question, in the words of LlamaIndex's ReActAgent.
    """

    @property
    def metadata(self) -> LLMMetadata:
        """What the framework asks of a model."""
        return LLMMetadata(model_name="reader")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: object) -> CompletionResponse:  # noqa: ARG002
        """Answer a prompt."""
        question = re.findall(r"^(?:Query|user): (.*\?)", prompt, re.MULTILINE)[-1]
        found = answer(question, " ".join(chunk for chunk in HANDBOOK if chunk in prompt))
        if "Action Input:" not in prompt:
            return CompletionResponse(text=found)
        observed = re.findall(r"Observation: (.*)", prompt.rpartition(f"user: {question}")[2])
        if observed:
            return CompletionResponse(text=f"Thought: I can answer now.\nAnswer: {observed[-1]}")
        asked = f'Thought: I look it up.\nAction: handbook\nAction Input: {{"input": "{question}"}}'
        return CompletionResponse(text=asked)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: object) -> CompletionResponseGen:
        """Answer a prompt in one piece."""
        whole = self.complete(prompt, formatted, **kwargs)
        yield CompletionResponse(text=whole.text, delta=whole.text)


def index() -> VectorStoreIndex:
    """Return the handbook as an index."""
    return VectorStoreIndex([TextNode(text=text) for text in HANDBOOK], embed_model=WordEmbedding())
