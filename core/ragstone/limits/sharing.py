"""One reply for all requests of a run that are the same, and for those of earlier runs where there is a journal."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any, Protocol, cast

from ragstone.judge import LLMReply, LLMRequest
from ragstone.keys import reply_key

_REMEMBERED = 4096
_SCHEMAS = 64


class Replies(Protocol):
    """Where replies are kept beyond a run: a `Journal`."""

    def reply(self, key: str) -> LLMReply | None:
        """Return the reply to a request; None where there is none."""
        ...

    def put_reply(self, key: str, reply: LLMReply) -> None:
        """Keep the reply to a request."""
        ...


class Sharing:
    """Remembers the last few thousand replies of a run, and those that are on their way.

    Args:
        replies: Where replies are kept beyond the run, if anywhere.
    """

    def __init__(self, replies: Replies | None = None) -> None:
        self._replies = replies
        self._recent: dict[bytes, LLMReply] = {}
        self._pending: dict[bytes, asyncio.Future[None]] = {}
        self._schemas: dict[str, list[dict[str, Any]]] = {}

    async def reply(
        self, request: LLMRequest, judge: str, draw: int, ask: Callable[[], Awaitable[object]]
    ) -> tuple[object, bool]:
        """Return the reply to a request, and whether it was there without a call.

        Who asks while somebody asks the same waits for that reply. Where that one fails, it is its own failure.

        Args:
            request: What is asked.
            judge: The `judge_key` of who is asked.
            draw: Draws share nothing.
            ask: Makes the call.
        """
        key = self._key(request, judge, draw)
        while (pending := self._pending.get(key)) is not None:
            await asyncio.shield(pending)
        recent = self._recent.get(key)
        if recent is not None:
            return recent, True
        lasting = ""
        if self._replies is not None:
            lasting = reply_key(request, judge, draw)
            kept = self._replies.reply(lasting)
            if kept is not None:
                self._remember(key, kept)
                return kept, True
        pending = self._pending[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await ask()
            if isinstance(reply, LLMReply) and isinstance(cast("object", reply.text), str):
                self._remember(key, reply)
                if self._replies is not None:
                    self._replies.put_reply(lasting, reply)
        finally:
            del self._pending[key]
            pending.set_result(None)
        return reply, False

    def _remember(self, key: bytes, reply: LLMReply) -> None:
        self._recent[key] = reply
        if len(self._recent) > _REMEMBERED:
            del self._recent[next(iter(self._recent))]

    def _key(self, request: LLMRequest, judge: str, draw: int) -> bytes:
        """Return a key for this run: for less than half of the time that one for all times takes."""
        texts = (judge, request.task, request.system, request.user)
        lengths = list(map(len, texts))  # say where one text ends and the next begins
        rest = (draw, request.temperature, request.sample_index, request.choices, self._schema(request), lengths)
        return blake2b("".join((*texts, repr(rest))).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def _schema(self, request: LLMRequest) -> int | str:
        known = self._schemas.setdefault(request.task, [])
        for number, schema in enumerate(known):
            if schema == request.schema:
                return number
        if len(known) >= _SCHEMAS:
            return repr(request.schema)
        known.append(copy.deepcopy(request.schema))
        return len(known) - 1
