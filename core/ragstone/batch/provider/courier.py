"""Bringing files of requests to a provider's batch endpoint, and their answers back: one small step at a time."""

import logging
from collections.abc import Iterable
from pathlib import Path

from ragstone.batch.provider.answers import Answered, read_answers
from ragstone.batch.provider.state import BatchState, RequestState, Stage, State
from ragstone.clients.batches import BatchFacts
from ragstone.clients.chat import ChatCall, Droppable
from ragstone.clients.compatible import OpenAICompatible
from ragstone.clients.connection import load_openai
from ragstone.errors import without_keys
from ragstone.store.journal.journal import Journal

_log = logging.getLogger(__name__)
_MOST_ERRORS = 2  # asked, and asked once more
_MOST_LOST = 3
_TOO_MANY_TOKENS = "token_limit_exceeded"
_UNCLEAR = frozenset({408, 409})  # and those of a server's own failure: the batch may have begun all the same
_DROPPABLE: tuple[Droppable, ...] = ("response_format", "temperature", "seed", "logprobs")


def droppable(names: Iterable[str]) -> list[Droppable]:
    """Return those of the names that are of parameters which can be left out."""
    wanted = frozenset(names)
    return [name for name in _DROPPABLE if name in wanted]


class Courier:
    """Takes batches from stage to stage, writing each down before and after it, so that none is begun twice.

    Args:
        client: The judge.
        folder: Where the files of requests are.
        state: Where the batches are written down.
        journal: Where replies are kept.
    """

    def __init__(self, client: OpenAICompatible, folder: Path, state: State, journal: Journal) -> None:
        self._client = client
        self._endpoint = client.batches
        self._folder = folder
        self._state = state
        self._journal = journal

    def advance(self, batch: BatchState) -> None:
        """Do for a batch what can be done now: upload it, begin it, look how it is doing, take what it gave.

        Raises:
            openai.OpenAIError: The server cannot be reached, or refused. Nothing is lost: try again.
            AnswerError: It answered with something that is no answer.
            JournalError: The replies cannot be kept.
        """
        if batch.stage == "beginning":  # and then we were killed, or lost the answer
            facts = self._endpoint.find(batch.mark)
            if facts is None:
                _log.warning("%s: the server knows no batch of it; it is begun again", batch.file)
                batch.stage = "uploaded"
            else:
                self._begun(batch, facts)
        if batch.stage == "written":
            batch.uploaded = self._endpoint.upload(self._folder / batch.file)
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
                self._at(batch, "written")  # refused for certain; its file may be the reason
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
        """Take what a batch that has ended gave, and send what it did not give back to wait for the next."""
        files = [self._content(name, batch) for name in (facts.output_file, facts.error_file) if name]
        batch.replies = 0
        with self._state.together():
            for content in files:
                for answered in read_answers(content):
                    batch.replies += self._take(answered, batch)
            for request in self._state.unanswered(batch.number):
                self._left_behind(request, batch)
            if batch.status == "failed" and _TOO_MANY_TOKENS in batch.problem:
                self._state.put_fact("max_requests", max(1, batch.lines // 2))  # pieces may fit one after the other
            self._state.put_fact("left_out", sorted(self._client.left_out))
            batch.stage = "settled"
            self._state.put_batch(batch)
            self._journal.flush()  # before it is said that they are there
        _log.info("%s: %s, %d replies of %d", batch.file, batch.status, batch.replies, batch.lines)
        if batch.problem:
            _log.warning("%s: %s", batch.file, batch.problem)

    def _content(self, name: str, batch: BatchState) -> bytes:
        try:
            return self._endpoint.download(name)
        except load_openai().NotFoundError:
            batch.problem = f"{batch.problem} the server does not hold {name} any more".strip()
            return b""

    def _take(self, answered: Answered, batch: BatchState) -> bool:
        """Take one answer; return whether it is a reply."""
        request = self._state.request(answered.key)
        if request is None or request.batch != batch.number or request.standing == "answered":
            return False  # not ours, of another batch, or there twice
        reply = answered.reply(request.choices)
        if reply is not None:
            self._journal.put_reply(request.key, reply)
            request.standing = "answered"
        elif request.standing == "asked" and not answered.not_run:
            self._failed(request, answered)
        self._state.put_request(request)
        return reply is not None

    def _failed(self, request: RequestState, answered: Answered) -> None:
        call = ChatCall({"model": self._client.model}, frozenset(droppable(request.used)))
        request.standing = "waiting"
        if self._client.learn(call, answered.status, answered.body):
            return  # it is asked without what the model does not take
        request.errors += 1
        request.problem = without_keys(answered.problem, self._client.secrets)[:500]
        if request.errors >= _MOST_ERRORS:
            request.standing = "given_up"

    def _left_behind(self, request: RequestState, batch: BatchState) -> None:
        request.standing = "waiting"
        if batch.status != "failed":  # which was refused as a whole, at no cost
            request.lost += 1
            request.problem = f"its batch {batch.id} ended without an answer to it ({batch.status})"
            if request.lost >= _MOST_LOST:
                request.standing = "given_up"
        self._state.put_request(request)
