"""`OpenAICompatible`: any server that speaks OpenAI's API, as a judge and as an embedder."""

import copy
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ragstone.adapters.chat_models import LeavesOut, as_rows
from ragstone.clients.access import Access, AnswerError, missing, read_json, resolve, with_path
from ragstone.clients.chat import (
    MOST_LOGPROBS,
    ChatCall,
    chat_call,
    fewer_logprobs,
    read_chat,
    refused,
    why_refused,
)
from ragstone.clients.connection import Ask, Client, load_openai
from ragstone.judge import Asking, LLMReply, LLMRequest
from ragstone.options import Count, Flag, checked
from ragstone.plain import as_dict, as_list
from ragstone.public import request_digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PROBE_TIMEOUT = 10.0
_LONGEST_REASON = 300


class OpenAICompatible(Client, LeavesOut):
    """A model behind OpenAI's API: OpenAI itself, vLLM, llama.cpp's server, Ollama, LM Studio and others.

    The same class is a judge (`LLM`) and an embedder (`Embedder`), depending on the model. If the server supports it,
    replies are constrained to the request's JSON Schema. If it refuses `response_format`, the schema goes into the
    prompt. If it refuses the temperature, the seed or log-probabilities, they are left out. Each object tries each of
    these until it is refused; what the server has taken once is then left out of the refused request alone.

    The `openai` package tries rate limits (429), server errors (5xx) and broken connections again, as long as
    `timeout` lasts. In a run, `evaluate` does instead.

    Safe to use from many threads and event loops at once: all calls run on one event loop in a thread of its own.
    Connections are closed when the object goes away or the program ends; `close`, or `with`, does it sooner.

    Args:
        model: The model's name on the server.
        base_url: The API's root with its /v1. Default: OPENAI_BASE_URL from the environment, else OpenAI.
        api_key: The key. Default: OPENAI_API_KEY, but only for OpenAI and for OPENAI_BASE_URL: another
            `base_url` never gets the environment's key, organisation or project.
        asking: "together" for capable models; "one_by_one" for small ones, of about 8B parameters or less.
        gives_probabilities: Whether the model sends log-probabilities; metrics that ask one by one then score by them.
        timeout: Seconds for one call in all: its tries, and the waits between them.
        max_retries: Tries after the first of a call outside of a run, while its time lasts.
        max_concurrency: Calls in flight at most, of all threads and event loops together. A call that waits for a
            retry counts, so an overloaded server gets fewer calls.
        batch_size: Texts in one request for embeddings, at most; more go out in several, one after the other. Servers
            differ in how many they take: 32 is the default of text-embeddings-inference.
        max_input_tokens: The longest prompt that the model takes, in tokens; None: unknown.
        max_reply_bytes: The largest reply that is read; a larger one is an error. Default: 10 MB.
        temperature: How much replies vary, whatever a metric asks for; None: 0, and more where draws are to differ.
        seed: The server's seed for replies; None: none, and the draw's number where draws are to differ.
        reasoning_effort: How long a reasoning model thinks, such as "low"; None: the server's default.
        extra_body: Further fields for each request's JSON, such as `{"chat_template_kwargs": {...}}`.

    Raises:
        ImportError: The `openai` package is not installed.
        ValueError: An argument is out of range, or there is no key for OpenAI.

    Example:
        >>> judge = OpenAICompatible("qwen3", base_url="http://127.0.0.1:8080/v1", asking="one_by_one")
        >>> judge
        OpenAICompatible('qwen3', base_url='http://127.0.0.1:8080/v1')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        asking: Asking = "together",
        gives_probabilities: bool = False,
        timeout: float = 120.0,
        max_retries: int = 2,
        max_concurrency: int = 16,
        batch_size: int = 32,
        max_input_tokens: int | None = None,
        max_reply_bytes: int = 10_000_000,
        temperature: float | None = None,
        seed: int | None = None,
        reasoning_effort: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        access = resolve(base_url, api_key, os.environ)
        super().__init__(model, access, timeout, max_retries, max_concurrency, max_reply_bytes)
        self.asking: Asking = checked("asking", asking, Asking)
        self.gives_probabilities: bool = checked("gives_probabilities", gives_probabilities, Flag)
        self._extra_body = copy.deepcopy(dict(extra_body or {}))
        sampling = {"temperature": temperature, "seed": seed, "reasoning_effort": reasoning_effort}
        self._sampling = {name: value for name, value in sampling.items() if value is not None}
        self._batch_size: int = checked("batch_size", batch_size, Count)
        self._top_logprobs = MOST_LOGPROBS
        self.max_input_tokens = max_input_tokens

    @classmethod
    def at(cls, url: str, model: str | None = None, **settings: Any) -> "OpenAICompatible":  # noqa: ANN401
        """Return a client for the server at `url`, asking it for its first model if none is named.

        Args:
            url: The API's root; /v1 is added to an address without a path.
            model: The model's name; None asks the server now, blocking for some seconds at most.
            settings: The constructor's other arguments.

        Raises:
            ConnectionError: The server was asked for its models and cannot be reached, or refused.
            AnswerError: It names none.
            ValueError: `url` is no http(s) address, or a setting is out of range.

        Example:
            >>> OpenAICompatible.at("http://127.0.0.1:11434", "qwen3:4b")
            OpenAICompatible('qwen3:4b', base_url='http://127.0.0.1:11434/v1')
        """
        url = with_path(url)
        if model is not None:
            return cls(model, base_url=url, **settings)
        timeout = min(settings.get("timeout", _PROBE_TIMEOUT), _PROBE_TIMEOUT)
        hasty: dict[str, Any] = {**settings, "timeout": timeout, "max_retries": 1}
        with cls("unknown", base_url=url, **hasty) as probe:
            shown = probe._access.shown
            try:
                names = probe.models()
            except load_openai().OpenAIError as error:
                raise ConnectionError(
                    f"cannot ask {shown} for its models: {error} (start the server, check the address, or name a model)"
                ) from error
        if not names:
            raise AnswerError(f"{shown} lists no models: load one into the server, or name a model")
        return cls(names[0], base_url=url, **settings)

    @property
    def identity(self) -> str:
        """The identity of this judge for journals, beside model and address: a digest of all that requests share."""
        also = {**self._sampling, **self._extra_body}
        return request_digest(also) if also else ""

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request, blocking the calling thread.

        Raises:
            openai.OpenAIError: The server cannot be reached or refused, after the retries.
            AnswerError: The server's answer is not a chat completion.
        """
        return self._run(partial(self._chat, request))

    async def agenerate(self, request: LLMRequest, /, *, max_retries: int | None = None) -> LLMReply:
        """Answer one request on the running event loop; otherwise as `generate`."""
        return await self._arun(partial(self._chat, request), max_retries)

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape (len(texts), dim), blocking; no text is no call, shape (0, 0).

        Raises:
            openai.OpenAIError: The server cannot be reached or refused, after the retries.
            AnswerError: The server's answer is not one vector for each text, all of one length.
        """
        return self._run(partial(self._vectors, list(texts))) if texts else as_rows([], [])

    async def aembed(self, texts: Sequence[str], /, *, max_retries: int | None = None) -> "NDArray[np.float32]":
        """Return one row per text on the running event loop; otherwise as `embed`."""
        return await self._arun(partial(self._vectors, list(texts)), max_retries) if texts else as_rows([], [])

    def models(self) -> tuple[str, ...]:
        """Return the names of the server's models in its order, blocking the calling thread.

        Raises:
            openai.OpenAIError: The server cannot be reached or refused, after the retries.
            AnswerError: The server's answer is not a list of models.
        """
        return self._run(self._names)

    async def _chat(self, request: LLMRequest, ask: Ask) -> LLMReply:
        # What the server refused of this request alone.
        without: set[str] = set()
        while True:
            call = chat_call(self.model, request, self._left_out.keys() | without, self._top_logprobs)
            try:
                content = await ask("/chat/completions", {**call.body, **self._sampling, **self._extra_body})
            except load_openai().APIStatusError as error:
                if not self._learn(call, error.status_code, error.body, without):
                    raise
            else:
                self._took(*call.optional)
                return read_chat(content, request, self._access)

    def _learn(self, call: ChatCall, status: int, answer: object, without: set[str]) -> bool:
        """Leave out what a server's error refuses of a call; whether it is something of that kind."""
        name = refused(status, answer, call)
        if name is None:
            return False
        asked = call.body.get("top_logprobs")
        fewer = fewer_logprobs(asked, answer) if name == "logprobs" and isinstance(asked, int) else None
        if fewer is None:
            self._refused(name, self._access.redact(why_refused(answer))[:_LONGEST_REASON])
            without.add(name)
        else:
            self._top_logprobs = min(self._top_logprobs, fewer)
        return True

    async def _vectors(self, texts: list[str], ask: Ask) -> "NDArray[np.float32]":
        import numpy as np

        server = self._access
        rows: list[object] = []
        for start in range(0, len(texts), self._batch_size):
            piece = texts[start : start + self._batch_size]
            # Numbers, not the package's default of base64, which some servers do not know.
            body = {"model": self.model, "input": piece, "encoding_format": "float", **self._extra_body}
            rows += read_vectors(await ask("/embeddings", body), len(piece), server)
        try:
            vectors = np.asarray(rows, dtype=np.float32)
        except (TypeError, ValueError, OverflowError):
            # There were texts or nulls in it, or rows of different lengths.
            vectors = np.empty(0, dtype=np.float32)
        if vectors.ndim != 2 or vectors.size == 0 or not np.isfinite(vectors).all():
            raise AnswerError(f"{server.shown} answered with embeddings that are not lists of numbers of one length")
        return vectors

    async def _names(self, ask: Ask) -> tuple[str, ...]:
        return read_models(await ask("/models"), self._access)


def read_vectors(content: bytes, count: int, server: Access) -> list[object]:
    """The vector of each text as the server wrote it, in the texts' order.

    Rows are put in the order of their `index`, or taken as they came from a server that gives none.

    Raises:
        AnswerError: There are not exactly `count` rows, one for each text.
    """
    rows = _data(content, server)
    if len(rows) != count:
        raise AnswerError(f"{server.shown} answered with {len(rows)} embeddings for {count} texts")
    if any("index" in row for row in rows):
        placed = {index: row for row in rows if isinstance(index := row.get("index"), int)}
        if set(placed) != set(range(count)):
            raise AnswerError(f"{server.shown} did not number its embeddings 0 to {count - 1}")
        rows = [placed[index] for index in range(count)]
    return [row.get("embedding") for row in rows]


def read_models(content: bytes, server: Access) -> tuple[str, ...]:
    """Return the names of a server's models in its order; AnswerError: the body is not a list of models."""
    names = [row.get("id") for row in _data(content, server)]
    return tuple(name for name in names if isinstance(name, str) and name)


def _data(content: bytes, server: Access) -> list[dict[str, object]]:
    body = read_json(content, server)
    if not isinstance(body.get("data"), list):
        raise missing(body, "data", server)
    return [as_dict(row) for row in as_list(body["data"])]
