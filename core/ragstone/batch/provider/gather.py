"""Gathering a round: the requests that evaluations wait for, into files; the first of each form is asked at once."""

import logging
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ragstone.batch.provider.files import RequestFiles, request_line
from ragstone.batch.provider.flows import Evaluation, Progressed
from ragstone.batch.provider.state import BatchState, RequestState, State
from ragstone.clients.chat import ChatCall
from ragstone.clients.compatible import OpenAICompatible
from ragstone.clients.connection import load_openai
from ragstone.errors import describe
from ragstone.judge import LLMRequest
from ragstone.store.journal.journal import Journal

_log = logging.getLogger(__name__)
_REQUEST_AT_FAULT = frozenset({400, 413, 422})
_UNLUCKY = 3  # requests at fault, one after the other: then it is not the requests


class Gathered(NamedTuple):
    """How many batches were written down, and how many requests were answered at once."""

    batches: int
    answered: int


class Gatherer:
    """Gathers one round.

    Args:
        client: The judge.
        folder: Where the files of requests go.
        state: Where requests and batches are written down.
        journal: Where the replies to requests that are asked at once are kept.
        max_requests: Requests in a batch at most.
        max_bytes: Bytes of a file at most.
        try_first: Whether the first request of each form is asked at once, not in a batch.
    """

    def __init__(
        self,
        client: OpenAICompatible,
        folder: Path,
        state: State,
        journal: Journal,
        *,
        max_requests: int,
        max_bytes: int,
        try_first: bool,
    ) -> None:
        self._client = client
        self._state = state
        self._journal = journal
        self._try_first = try_first
        batches = state.batches()
        self._round = 1 + (batches[-1].round if batches else 0)
        most = min(max_requests, int(state.fact("max_requests", max_requests)))
        self._files = RequestFiles(folder, len(batches) + 1, most, max_bytes)
        self._max_bytes = max_bytes
        self._tried = {tuple(form) for form in state.fact("tried", [])}
        self._unlucky = 0
        self._answered = 0

    def gather(self, progressed: Iterable[tuple[Evaluation, Progressed]]) -> Gathered:
        """Write down what is missing.

        Raises:
            openai.OpenAIError: The server refuses what is asked at once, and not because of the one request.
            AnswerError: It answers with something else.
        """
        try:
            with self._state.together():
                for evaluation, far in progressed:
                    self._state.put_vectors(evaluation.key, {} if far.outcome else far.vectors)
                    for key, request in far.missing.items():
                        self._want(key, request, evaluation)
                files = self._files.close()
                for file in files:
                    mark = secrets.token_hex(16)
                    self._state.put_batch(BatchState(file.number, self._round, file.name, file.lines, mark, "written"))
        finally:
            self._files.abandon()
        return Gathered(len(files), self._answered)

    def _want(self, key: str, request: LLMRequest, evaluation: Evaluation) -> None:
        state = self._state.request(key) or RequestState(key, evaluation.key, request.choices, frozenset(), "waiting")
        if state.standing == "asked":
            return  # by another evaluation, in this round
        call = self._client.chat_call(request)
        if self._try_first and _form(call) not in self._tried:
            if self._at_once(state, request):
                return
            call = self._client.chat_call(request)  # which may have learned what to leave out
        line = request_line(key, call.body)
        state.used = call.optional
        if self._files.fits(line):
            state.batch = self._files.add(line)
            state.standing = "asked"
        else:
            state.standing = "given_up"
            state.problem = f"it is {len(line):,} bytes long; a batch's file may have {self._max_bytes:,} (max_bytes)"
        self._state.put_request(state)

    def _at_once(self, state: RequestState, request: LLMRequest) -> bool:
        """Ask a request now, which shows in seconds what is wrong with key, model or parameters; False if it failed."""
        self._state.put_request(state)
        self._state.checkpoint()  # so that it is known whose call it is, also after a kill
        try:
            reply = self._client.generate(request)
        except load_openai().APIStatusError as error:
            self._unlucky += 1
            if error.status_code not in _REQUEST_AT_FAULT or self._unlucky >= _UNLUCKY:
                raise
            state.errors += 1
            state.problem = describe(error, self._client.secrets)
            return False
        self._unlucky = 0
        self._answered += 1
        self._tried.add(_form(self._client.chat_call(request)))
        self._journal.put_reply(state.key, reply)
        self._journal.flush()
        state.standing = "answered"
        self._state.put_request(state)
        self._state.put_fact("tried", sorted(self._tried))
        self._state.put_fact("left_out", sorted(self._client.left_out))
        self._state.checkpoint()
        return True


def _form(call: ChatCall) -> tuple[str, ...]:
    return tuple(sorted(call.optional))
