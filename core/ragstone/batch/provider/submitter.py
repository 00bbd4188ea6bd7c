"""Batches on their way to a provider's batch endpoint and back, one small step at a time."""

import json
import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

from ragstone.batch.provider.state import BatchState, RequestState, Stage, State
from ragstone.clients.batches import BatchFacts
from ragstone.clients.chat import ChatCall, Droppable, read_completion
from ragstone.clients.compatible import OpenAICompatible
from ragstone.clients.connection import load_openai
from ragstone.errors import LONGEST, without_keys
from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.values import as_dict

_log = logging.getLogger(__name__)
_MOST_ERRORS = 2  # asked, and asked once more
_MOST_LOST = 3
_TOO_MANY_TOKENS = "token_limit_exceeded"
_UNCLEAR = frozenset({408, 409})  # with these, and with a server's own failures, the batch may have begun
_NOT_RUN = frozenset({"batch_expired", "batch_cancelled", "batch_canceled", "request_cancelled"})


class AnswerLine(NamedTuple):
    """One line of an output or error file: the request's key, its own HTTP status (0: not run), and what came."""

    key: str
    status: int
    body: dict[str, object]
    error: dict[str, object]

    @property
    def problem(self) -> str:
        """What went wrong, in the words of the provider, perhaps with keys."""
        if self.error:
            return f"{self.error.get('code')}: {self.error.get('message')}"[:LONGEST]
        message = as_dict(self.body.get("error")).get("message") or self.body.get("error") or self.body.get("message")
        return f"status {self.status}: {message or 'no completion'}"[:LONGEST]

    def reply(self, choices: Sequence[str] | None) -> LLMReply | None:
        """Return the judge's reply to a request of these choices; None if there is none."""
        request = LLMRequest("", "", "", {}, choices=None if choices is None else tuple(choices))
        return read_completion(self.body, request) if self.status == 200 else None


def read_answers(content: bytes) -> Iterator[AnswerLine]:
    r"""Yield the answers in a file, in whatever order they come; lines that are no answers are left out.

    Example:
        >>> [a.problem for a in read_answers(b'{"custom_id": "k", "response": {"status_code": 500, "body": {}}}\noops')]
        ['status 500: no completion']
    """
    start = 0
    while start < len(content):  # splitting it at once would make a second copy of a big file
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        try:
            line = as_dict(json.loads(content[start:end]))
        except (ValueError, RecursionError):
            line = {}
        start = end + 1
        key, response = line.get("custom_id"), as_dict(line.get("response"))
        status = response.get("status_code")
        if isinstance(key, str):
            number = status if isinstance(status, int) else 0
            yield AnswerLine(key, number, as_dict(response.get("body")), as_dict(line.get("error")))


class BatchSubmitter:
    """Takes batches from stage to stage. It writes each stage down before and after, so that no batch begins twice."""

    def __init__(self, client: OpenAICompatible, state: State) -> None:
        self._client = client
        self._endpoint = client.batches
        self._state = state

    def advance(self, batch: BatchState) -> None:
        """Do what can be done now: upload the batch, begin it, look how it is doing, take its replies.

        Raises:
            openai.OpenAIError: The server cannot be reached, or refused. Nothing is lost: try again.
            AnswerError: The server's answer cannot be read.
            JournalError: The replies cannot be kept.
        """
        if batch.stage == "beginning":  # the process was killed then, or the answer was lost
            facts = self._endpoint.find(batch.mark)
            if facts is None:
                _log.warning("%s: the server knows no batch of it; it is begun again", batch.file)
                batch.stage = "uploaded"
            else:
                self._begun(batch, facts)
        if batch.stage == "written":
            batch.uploaded = self._endpoint.upload(self._state.folder / batch.file)
            self._at(batch, "uploaded")
        if batch.stage == "uploaded":
            self._begin(batch)
        elif batch.stage == "begun":
            self._look(batch)

    def _at(self, batch: BatchState, stage: Stage) -> None:
        batch.stage = stage
        self._state.put_batch(batch)

    def _begin(self, batch: BatchState) -> None:
        self._at(batch, "beginning")
        try:
            facts = self._endpoint.begin(batch.uploaded or "", batch.mark)
        except load_openai().APIStatusError as error:
            if error.status_code < 500 and error.status_code not in _UNCLEAR:
                self._at(batch, "written")  # certainly refused, perhaps because of its file
            raise
        self._begun(batch, facts)
        _log.info("%s: %d requests in batch %s, of round %d", batch.file, batch.lines, facts.id, batch.round)

    def _begun(self, batch: BatchState, facts: BatchFacts) -> None:
        batch.id, batch.status = facts.id, facts.status
        self._at(batch, "begun")

    def _look(self, batch: BatchState) -> None:
        try:
            facts = self._endpoint.look(batch.id or "")
        except load_openai().NotFoundError:
            facts = BatchFacts(batch.id or "", "failed", problems=("the server does not know the batch any more",))
        batch.status, batch.completed, batch.failed = facts.status, facts.completed, facts.failed
        batch.problem = "; ".join(facts.problems)[:500]
        if facts.ended:
            self._settle(batch, facts)
        else:
            self._state.put_batch(batch)

    def _settle(self, batch: BatchState, facts: BatchFacts) -> None:
        """Take the replies of a batch that has ended; requests without one wait for the next batch."""
        files = [self._content(name, batch) for name in (facts.output_file, facts.error_file) if name]
        with self._state.together():
            batch.replies = sum(
                self._take(answer, batch.number) for content in files for answer in read_answers(content)
            )
            for key, request in self._state.requests_in(batch.number):
                request.batch = 0
                if batch.status != "failed":  # a batch refused as a whole costs nothing
                    request.lost += 1
                    request.problem = f"its batch {batch.id} ended without an answer to it ({batch.status})"
                    if request.lost >= _MOST_LOST:
                        request.give_up()
                self._state.put_request(key, request)
            if batch.status == "failed" and _TOO_MANY_TOKENS in batch.problem:
                self._state.put_fact("max_requests", max(1, batch.lines // 2))  # halves may fit one after the other
            self._state.put_fact("left_out", sorted(self._client.left_out))
            self._at(batch, "settled")
            self._state.journal.flush()  # before the state says that they are there
        _log.info("%s: %s, %d replies of %d", batch.file, batch.status, batch.replies, batch.lines)
        if batch.problem:
            _log.warning("%s: %s", batch.file, batch.problem)

    def _content(self, name: str, batch: BatchState) -> bytes:
        try:
            return self._endpoint.download(name)
        except load_openai().NotFoundError:
            batch.problem = f"{batch.problem} the server does not hold {name} any more".strip()
            return b""

    def _take(self, answer: AnswerLine, batch: int) -> bool:
        """Take one answer; return whether it is a reply."""
        request = self._state.request(answer.key)
        if request is None or request.batch != batch or answer.error.get("code") in _NOT_RUN:
            return False  # of another run or batch, there twice, or not run
        reply = answer.reply(request.choices)
        if reply is None:
            self._failed(request, answer)
        else:
            self._state.journal.put_reply(answer.key, reply)
            request.batch = None
        self._state.put_request(answer.key, request)
        return reply is not None

    def _failed(self, request: RequestState, answer: AnswerLine) -> None:
        request.batch = 0
        optional = frozenset(name for name in get_args(Droppable) if name in request.used)
        if self._client.learn(ChatCall({"model": self._client.model}, optional), answer.status, answer.body):
            return  # the next batch asks it without what the model does not take
        request.errors += 1
        request.problem = without_keys(answer.problem, self._client.secrets)[:500]
        if request.errors >= _MOST_ERRORS:
            request.give_up()
