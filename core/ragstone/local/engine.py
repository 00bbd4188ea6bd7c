"""llama.cpp in this process: one model, one conversation at a time.

xllamacpp wraps llama.cpp's server, which cannot be had without its HTTP listener. It is bound to a Unix socket
in a private folder that is deleted as soon as the model is loaded, so that nothing can connect to it; where
there are no Unix sockets, to an ephemeral port on 127.0.0.1 behind a random key. Requests do not go through it.
"""

import ctypes
import json
import math
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ragstone.local.files import ModelFile, installed_path, load_extra

# Bytes; the systems' limits are 104 to 108.
_LONGEST_SOCKET_PATH = 100
# A stopped call ends after so many tokens of the prompt. Larger batches are no faster on CPUs.
_BATCH_TOKENS = 256
_QUIET = -1

# A chat template's own marks inside the data would end the message that the data stand in.
_BAR = "[|\N{FULLWIDTH VERTICAL LINE}]"
_MARK = re.compile(
    rf"<(?={_BAR}[^<>\n]{{1,40}}{_BAR}>|/?(?:s|bos|eos|tool_call|(?:start|end)_of_turn)>)|\[(?=/?INST\])"
)


@dataclass(frozen=True, slots=True)
class Generated:
    """What the model wrote, the candidates for its first token (empty unless asked for), and why it ended."""

    text: str
    input_tokens: int
    output_tokens: int
    candidates: tuple[tuple[str, float], ...]
    ended: str


class Engine:
    """A GGUF model, which one thread uses at a time: the one that holds `lock`."""

    def __init__(self, file: ModelFile | Path, *, threads: int, context_tokens: int) -> None:
        self._file = file
        self._threads = threads
        self._context_tokens = context_tokens
        # An xllamacpp.Server, once it is loaded.
        self._server: Any = None
        self._pid = os.getpid()
        self._lock = threading.Lock()

    @property
    def lock(self) -> threading.Lock:
        """What the thread that uses the model holds. RuntimeError: in a forked child, where it may never be free."""
        if self._pid != os.getpid():
            raise RuntimeError("this object was made before a fork; make a new one in the child process")
        return self._lock

    def load(self) -> None:
        """Load the model, if it is not loaded. RuntimeError: llama.cpp does not take the file."""
        if self._server is None:
            self._server = _start_server(installed_path(self._file), self._threads, self._context_tokens)

    def unload(self) -> None:
        """Free the model's memory, when the call that runs has ended."""
        if self._pid == os.getpid():
            with self._lock:
                self._server = None
        elif self._server is not None:
            # A forked child has none of llama.cpp's threads, and its destructor would wait for them forever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._server))

    def chat(
        self, system: str, user: str, beginning: str, options: dict[str, Any], stopped: Callable[[], bool]
    ) -> Generated:
        """Ask for one reply, which goes on from its beginning.

        `options` are further fields of the request, as llama.cpp's chat completions endpoint has them. `stopped` is
        asked after each piece of work; when it says True the call ends with CancelledError. A prompt that is longer
        than the context is a ValueError, anything else that llama.cpp reports a RuntimeError.
        """
        messages = [
            {"role": "system", "content": _without_marks(system)},
            {"role": "user", "content": _without_marks(user)},
        ]
        if beginning:
            messages.append({"role": "assistant", "content": beginning})
        body = {
            **options,
            "messages": messages,
            # A stream is the only call that can be stopped.
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        chunks: list[dict[str, Any]] = []

        def receive(chunk: dict[str, Any]) -> bool:
            chunks.append(chunk)
            return stopped()

        # Not in a variable: an exception's frames would keep the model alive after `unload`, even past exit.
        self._server.handle_chat_completions(body, receive)
        if stopped():
            raise CancelledError
        return _read_chunks(chunks)


def _without_marks(text: str) -> str:
    """Return `text` without lone surrogates (no JSON) and with every chat template mark broken by a space."""
    return _MARK.sub(lambda mark: mark.group() + " ", text.encode("utf-8", "replace").decode("utf-8"))


def _xllamacpp() -> ModuleType:
    """Import xllamacpp, whose threads then sleep while they wait for each other: libgomp reads it when it is loaded."""
    if "OMP_WAIT_POLICY" in os.environ:
        return load_extra("xllamacpp")
    os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        return load_extra("xllamacpp")
    finally:
        del os.environ["OMP_WAIT_POLICY"]


def _start_server(path: Path, threads: int, context_tokens: int) -> Any:  # noqa: ANN401 - the package has no types
    xllamacpp = _xllamacpp()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context_tokens
    params.n_batch = params.n_ubatch = _BATCH_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    # Copies of old prompts would grow to 8 GiB; the beginning of the last prompt is kept anyway.
    params.cache_ram_mib = 0
    # A model that thinks aloud does not answer with its first token.
    params.enable_reasoning = 0
    params.warmup = False
    params.verbosity = _QUIET
    params.n_threads_http = 1
    params.ui = params.endpoint_slots = False
    params.api_keys = [secrets.token_urlsafe(32)]
    with tempfile.TemporaryDirectory(prefix="ragstone-") as folder:
        socket = str(Path(folder, "llm.sock"))
        if os.name == "posix" and len(os.fsencode(socket)) <= _LONGEST_SOCKET_PATH:
            params.hostnames = [socket]
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            message = f"llama.cpp cannot load {path}: not a whole GGUF file of a model it knows, or no memory"
            raise RuntimeError(message) from error


def _read_chunks(chunks: list[dict[str, Any]]) -> Generated:
    text: list[str] = []
    candidates: tuple[tuple[str, float], ...] = ()
    usage: dict[str, Any] = {}
    ended = ""
    for chunk in chunks:
        if "error" in chunk:
            raise _error(chunk["error"])
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices", ()):
            text.append(choice["delta"].get("content") or "")
            ended = choice.get("finish_reason") or ended
            if choice.get("logprobs") and not candidates:
                first: list[dict[str, Any]] = choice["logprobs"]["content"][0]["top_logprobs"]
                candidates = tuple((option["token"], math.exp(option["logprob"])) for option in first)
    return Generated("".join(text), usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0), candidates, ended)


def _error(error: dict[str, Any]) -> Exception:
    if error.get("type") == "exceed_context_size_error":
        return ValueError(
            f"the prompt has {error['n_prompt_tokens']} tokens and the context has room for {error['n_ctx']}: "
            "score fewer or shorter texts, or raise LocalLLM(context_tokens=...)"
        )
    return RuntimeError(f"llama.cpp: {error.get('message') or json.dumps(error)}")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
