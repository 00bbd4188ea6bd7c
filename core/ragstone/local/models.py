"""A small instruct model in this process as a judge, and a sentence embedding model as an embedder."""

import asyncio
import json
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ragstone.background import daemon
from ragstone.judge import Asking, BaseEmbedder, BaseLLM, LLMReply, LLMRequest
from ragstone.local.engine import Engine, Generated, cores
from ragstone.local.files import (
    EMBEDDER_FILE,
    LLM_FILE,
    TOKENIZER_FILE,
    content_of,
    hub_model,
    installed_path,
    load_extra,
)
from ragstone.options import Count, checked

if TYPE_CHECKING:
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

# A small model may repeat itself without end. Past this a reply is cut, and the parser rejects it.
_REPLY_TOKENS = 1024
# Tokens, of some 150,000, that are looked at for the choices. A choice that begins with none has probability 0.
_CANDIDATES = 1000
# A shared beginning with less than this part of the mass is not worth a call of its own.
_NEGLIGIBLE = 0.01
Candidates = Iterable[tuple[str, float]]
"""Next tokens with their probabilities."""

# all-MiniLM-L6-v2 was trained on texts of this length; the rest of a longer one is not read.
_MAX_TOKENS = 256


class LocalLLM(BaseLLM):
    """The embedded judge: Qwen2.5-Coder-1.5B-Instruct (Q4_K_M), or any other GGUF file of an instruct model.

    It needs 2.1 GB of memory, but no key and no server. In our measurements its probability of "yes" separates good
    from bad well if each call asks for one decision (`LLMRequest.choices`). Its lists of ids are useless, hence
    `asking = "one_by_one"`. It says yes too readily: rank by the probability.

    The first call, or `load`, loads the model. Calls run one at a time. Share one object, and fork before it is
    loaded. See docs/judging.md.

    Args:
        path: A GGUF file, or "hf:OWNER/REPO/FILE.gguf" after `ragstone pull`; None: the model above.
        threads: Computing threads. None: two if this process has two cores or more, else one.
        context_tokens: Longest prompt and reply together, in tokens; memory grows with it.
        cache_prompt: Whether to reuse the beginning of the last prompt; this may change a close decision.

    Attributes:
        model: "local:" and the file's name.
        max_input_tokens: Longest prompt in tokens that leaves room for the longest reply (1024).

    Raises:
        ValueError: `threads` or `context_tokens` is too small, or "hf:..." names no GGUF file.

    Example:
        >>> with LocalLLM() as llm:  # doctest: +SKIP
        ...     llm.generate(LLMRequest("demo", "Answer yes or no.", "Is fire hot?", {}, choices=("yes", "no")))
        LLMReply(text='yes', ..., probabilities={'yes': 0.9..., 'no': 0.0...}, ended='')
        >>> LocalLLM().model
        'local:qwen2.5-coder-1.5b-instruct-q4_k_m'
    """

    asking: Asking = "one_by_one"
    gives_probabilities = True
    in_turn = True
    # The embedder that goes with it.
    embedder = "local"

    def __init__(
        self,
        path: str | Path | None = None,
        threads: int | None = None,
        context_tokens: int = 8192,
        *,
        cache_prompt: bool = True,
    ) -> None:
        most: int = checked("threads", min(2, cores()) if threads is None else threads, Count)
        checked("context_tokens", context_tokens, Annotated[int, Field(ge=2 * _REPLY_TOKENS)])
        name = "" if path is None else str(path)
        own = hub_model(name) if name.startswith("hf:") else Path(name).expanduser()
        self._file = own if name else LLM_FILE
        path = self._file if isinstance(self._file, Path) else self._file.path
        self.model = f"local:{path.stem}"
        self.max_input_tokens = context_tokens - _REPLY_TOKENS
        self._cache_prompt = cache_prompt
        self._engine = Engine(self._file, threads=most, context_tokens=context_tokens)
        self._leaving = threading.Event()
        # At exit too: llama.cpp's own threads must have ended before the process tears down.
        weakref.finalize(self, _finish, self._leaving, self._engine)

    @property
    def identity(self) -> dict[str, object]:
        """What makes this judge, for journals: the file by its content, and whether prompts are read in full."""
        return {"file": content_of(self._file), "cache_prompt": self._cache_prompt}

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request, blocking the calling thread while the calls before it and this one run.

        Raises:
            FileNotFoundError: The model file is not there; the message says how to get it.
            ImportError: The extra `ragstone[local]` is not installed.
            ValueError: The prompt is longer than the context, or the schema or the choices cannot be used.
        """
        stop, call = self._begin(request)
        try:
            return call.result()
        except BaseException:
            # Ctrl-C in the waiting thread frees the model for the next call.
            stop.set()
            raise

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request while the event loop runs on; raises like `generate`."""
        stop, call = self._begin(request)
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            stop.set()
            raise

    def load(self) -> None:
        """Load the model now: 1.5 to 3 s from the page cache, during which no other Python thread runs.

        Raises as `generate`; RuntimeError: it is not a GGUF file of a model that llama.cpp knows.
        """
        with self._engine.lock:
            self._engine.load()

    def close(self) -> None:
        """Free the model's memory, when the call that runs has ended; a later call loads it again."""
        self._engine.unload()

    def __enter__(self) -> "LocalLLM":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, request: LLMRequest) -> "tuple[threading.Event, Future[LLMReply]]":
        stop = threading.Event()
        return stop, daemon(partial(self._answer, request, lambda: stop.is_set() or self._leaving.is_set()))

    def _answer(self, request: LLMRequest, stopped: Callable[[], bool]) -> LLMReply:
        with self._engine.lock:
            if stopped():
                raise CancelledError
            self._engine.load()
            return self._reply(request, stopped)

    def _reply(self, request: LLMRequest, stopped: Callable[[], bool]) -> LLMReply:
        used = [0, 0]

        def chat(beginning: str, options: dict[str, Any]) -> Generated:
            options = {"cache_prompt": self._cache_prompt, **options}
            reply = self._engine.chat(request.system, request.user, beginning, options, stopped)
            used[0] += reply.input_tokens
            used[1] += reply.output_tokens
            return reply

        if request.choices is None:
            drawn: dict[str, Any] = {"temperature": request.temperature, "seed": request.sample_index}
            if request.schema:
                form = {"name": "reply", "schema": request.schema}
                drawn["response_format"] = {"type": "json_schema", "json_schema": form}
            reply = chat("", drawn | {"max_tokens": _REPLY_TOKENS})
            return LLMReply(reply.text, used[0], used[1], ended=reply.ended)
        first_token = {"max_tokens": 1, "logprobs": True, "top_logprobs": _CANDIDATES, "temperature": 0.0}
        probabilities = probabilities_by_asking(
            lambda beginning: chat(beginning, first_token).candidates, request.choices
        )
        if probabilities is not None:
            text = max(probabilities, key=probabilities.__getitem__)
        else:
            # Some other beginning is all but certain: the likeliest choice is taken, without a probability.
            # GBNF takes JSON's escapes.
            words = (json.dumps(choice, ensure_ascii=False) for choice in request.choices)
            grammar = "root ::= " + " | ".join(words)
            text = chat("", {"max_tokens": _REPLY_TOKENS, "grammar": grammar, "temperature": 0.0}).text
        return LLMReply(text, used[0], used[1], probabilities)


def probabilities_by_asking(ask: Callable[[str], Candidates], choices: Sequence[str]) -> dict[str, float] | None:
    """Return the probability of each choice, summing to 1; None when the model would say none of them.

    It is the model's own distribution, before any grammar: P(word) is the mass of the tokens that begin the word (any
    case, any leading space), divided by the mass of all the words. Choices that begin with the same token
    ("consistent", "contradicted": "con") are told apart by asking again after that token; a choice that begins another
    ("no", "no answer") has what does not go on.

    Args:
        ask: Returns the next tokens and their probabilities after the given beginning of the reply.
        choices: The words; at least two, different also when case is ignored, or it is a ValueError.

    Example:
        >>> tokens = [("Yes", 0.25), ("yes", 0.125), ("The", 0.5), (" no", 0.125)]
        >>> probabilities_by_asking(lambda beginning: tokens, ["yes", "no"])
        {'yes': 0.75, 'no': 0.25}
    """
    rest = {choice: choice.strip().casefold() for choice in choices}
    if len(choices) < 2 or not all(rest.values()) or len(set(rest.values())) < len(choices):
        raise ValueError(f"choices must be two or more words that differ in more than case: {choices!r}")
    masses = _masses(ask, "", rest)
    total = sum(masses.values())
    return {choice: mass / total for choice, mass in masses.items()} if total else None


def _masses(ask: Callable[[str], Candidates], beginning: str, rest: Mapping[str, str]) -> dict[str, float]:
    """Return the mass of each choice, `rest` being what of it is still unsaid after `beginning`."""
    masses = dict.fromkeys(rest, 0.0)
    shared: list[tuple[str, float, list[str]]] = []
    ended = next((choice for choice, left in rest.items() if not left), None)
    for token, probability in ask(beginning):
        text = token if beginning else token.lstrip()
        piece = text.casefold()
        fits = [choice for choice, left in rest.items() if piece and left.startswith(piece)]
        if len(fits) > 1:
            shared.append((text, probability, fits))
        elif fits:
            masses[fits[0]] += probability
        elif ended is not None:
            # The reply goes on like no other choice, so it ended here.
            masses[ended] += probability
    total = sum(masses.values()) + sum(probability for _, probability, _ in shared)
    for text, probability, fits in shared:
        if probability < _NEGLIGIBLE * total:
            continue
        deeper = _masses(ask, beginning + text, {c: rest[c][len(text.casefold()) :] for c in fits})
        whole = sum(deeper.values())
        for choice, mass in deeper.items():
            masses[choice] += probability * mass / whole if whole else 0.0
    return masses


def _finish(leaving: threading.Event, engine: Engine) -> None:
    leaving.set()
    engine.unload()


class LocalEmbedder(BaseEmbedder):
    """The embedded embedder: all-MiniLM-L6-v2, 8-bit ONNX, 384 dimensions, English.

    A text's vector is the mean of its tokens' vectors (at most 256 tokens), divided by its length, so that the
    dot product of two rows is their cosine. The same text gets the same vector, in any company. About 300
    sentences a second on one core. The model is loaded by the first call; calls may run at once.

    Args:
        path: An ONNX export of a sentence-transformers model with mean pooling, with its `tokenizer.json`
            beside it; by default the files that `ragstone pull` fetched.

    Attributes:
        model: "local:" and the model's name.

    Example:
        >>> LocalEmbedder().embed(["A dog barks.", "A cat purrs."]).shape  # doctest: +SKIP
        (2, 384)
        >>> LocalEmbedder().model
        'local:all-minilm-l6-v2-int8'
    """

    # More calls at once would only share the same cores.
    max_concurrency: int = 1

    def __init__(self, path: str | Path | None = None) -> None:
        own = Path(path).expanduser() if path else None
        self._files = (own, own.with_name("tokenizer.json")) if own else (EMBEDDER_FILE, TOKENIZER_FILE)
        self.model = f"local:{Path(path or EMBEDDER_FILE.name).stem}"
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    @property
    def identity(self) -> dict[str, object]:
        """What makes this embedder, for journals: model and tokenizer by their content."""
        return {"files": [content_of(file) for file in self._files]}

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one unit row per text, float32, shape (len(texts), 384).

        Raises:
            FileNotFoundError: The model files are not there; the message says how to get them.
            ImportError: The extra `ragstone[local]` is not installed.
        """
        import numpy as np

        session, tokenizer = self._load()
        names = [item.name for item in session.get_inputs()]
        rows = np.zeros((len(texts), session.get_outputs()[0].shape[-1]), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            # Lone surrogates are no text to the tokenizer.
            clean = text.encode("utf-8", "replace").decode("utf-8")
            ids = np.asarray([tokenizer.encode(clean).ids], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            hidden = session.run(None, {name: inputs[name] for name in names})[0]
            mean = hidden.sum(axis=1) / np.float32(ids.shape[1])
            length = np.sqrt(np.square(mean).sum(axis=1))
            row[:] = mean / np.maximum(length, np.float32(1e-12))
        return rows

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                onnx, vocabulary = map(installed_path, self._files)
                tokenizer = load_extra("tokenizers").Tokenizer.from_file(str(vocabulary))
                tokenizer.no_padding()
                tokenizer.enable_truncation(_MAX_TOKENS)
                runtime = load_extra("onnxruntime")
                options = runtime.SessionOptions()
                options.intra_op_num_threads = options.inter_op_num_threads = 1
                # Plans are kept for each length of text, and their memory only grows.
                options.enable_mem_pattern = False
                session = runtime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])
                self._loaded = session, tokenizer
            return self._loaded
