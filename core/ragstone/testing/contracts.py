"""What every adapter must do, as classes of tests to inherit from. Needs no pytest to import.

class TestMyLLM(LLMContract):
    def llm(self):
        return MyLLM(...)
"""

import asyncio
import copy
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from ragstone.identity import identity_json
from ragstone.judge import (
    LLM,
    DecisionModel,
    DecisionRequest,
    Embedder,
    LLMReply,
    LLMRequest,
    Question,
)
from ragstone.judging.checkers import ClaimChecker
from ragstone.judging.reply import as_shares

A = TypeVar("A")
B = TypeVar("B")
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


class LLMContract:
    """Tests that any `LLM` must pass, whatever it answers. Define `llm`."""

    def llm(self) -> LLM:
        """Return the LLM under test, ready to answer."""
        raise NotImplementedError

    def request(self, **changes: Any) -> LLMRequest:  # noqa: ANN401 - any field of LLMRequest
        """Return a small request that any judge can answer."""
        plain: dict[str, Any] = {
            "task": "contract.answer",
            "system": "Answer the question with yes or no.",
            "user": 'Is water wet? Reply with bare JSON: {"answer": "yes" or "no"}.',
            "schema": copy.deepcopy(_SCHEMA),
        }
        return LLMRequest(**(plain | changes))

    def test_it_is_an_llm(self) -> None:
        """It has the protocol's members, a name, a known way of asking and, if any, an identity that JSON can hold."""
        llm = self.llm()
        assert isinstance(llm, LLM)
        assert llm.model
        assert llm.asking in ("together", "one_by_one")
        assert getattr(llm, "gives_probabilities", False) in (True, False)
        assert identity_json(llm) == identity_json(llm)

    def test_both_halves_answer(self) -> None:
        """Sync and async give a reply of the same form: in threads and tasks at once, and in one loop after another."""
        llm = self.llm()
        for _, reply in _answers(llm.generate, llm.agenerate, [self.request() for _ in range(4)]):
            assert isinstance(reply, LLMReply)
            assert isinstance(reply.text, str)
            for count in (reply.input_tokens, reply.output_tokens):
                assert count is None or count >= 0

    def test_probabilities_are_those_of_the_choices(self) -> None:
        """One that declares probabilities gives them; where there are any, each is from 0 to 1, and they sum to 1."""
        choices = ("yes", "no")
        llm = self.llm()
        reply = llm.generate(
            self.request(
                user="Is water wet? Reply with one word: yes or no.",
                schema={"type": "string", "enum": list(choices)},
                choices=choices,
            )
        )
        if reply.probabilities is not None or getattr(llm, "gives_probabilities", False):
            assert reply.probabilities is not None
            shares = as_shares(reply.probabilities, choices)
            assert all(abs(reply.probabilities[choice] - share) < 1e-6 for choice, share in shares.items())

    def test_it_changes_no_request(self) -> None:
        """The request is the caller's."""
        request = self.request()
        self.llm().generate(request)
        assert request == self.request()


class DecisionContract:
    """Tests that any `DecisionModel` must pass, whatever it answers. Define `model`."""

    def model(self) -> DecisionModel:
        """Return the decision model under test, ready to answer."""
        raise NotImplementedError

    def request(self, questions: int = 2) -> DecisionRequest:
        """Return a small request that any decision model can answer."""
        asked = {str(i): Question(f"Is it true that {i} is even?", ("yes", "no")) for i in range(1, questions + 1)}
        asked["kind"] = Question("What is the text about?", ("water", "fire", "neither"))
        return DecisionRequest("contract.answer", {"text": "Water is wet."}, asked)

    def test_it_is_a_decision_model(self) -> None:
        """It has the protocol's members, a name, room for questions and, if any, an identity that JSON can hold."""
        model = self.model()
        assert isinstance(model, DecisionModel)
        assert model.model
        assert model.most_questions >= 1
        assert identity_json(model) == identity_json(model)

    def test_each_question_is_answered_with_the_probabilities_of_its_choices(self) -> None:
        """Sync and async, in threads, tasks and loops: each from 0 to 1 with a sum of 1, or None for a refusal."""
        model = self.model()
        for request, reply in _answers(model.decide, model.adecide, [self.request(i) for i in range(1, 5)]):
            assert reply.probabilities.keys() == request.questions.keys()
            for name, question in request.questions.items():
                shares = reply.probabilities[name]
                if shares is not None:
                    assert shares.keys() == set(question.choices)
                    assert all(0 <= share <= 1 for share in shares.values())
                    assert abs(sum(shares.values()) - 1) < 0.02


class ClaimCheckerContract:
    """Tests that any `ClaimChecker` must pass, whatever it answers. Define `checker`."""

    def checker(self) -> ClaimChecker:
        """Return the claim checker under test, ready to answer."""
        raise NotImplementedError

    def test_it_is_a_claim_checker(self) -> None:
        """It has the protocol's members, a name, room for claims and, if any, an identity that JSON can hold."""
        checker = self.checker()
        assert isinstance(checker, ClaimChecker)
        assert checker.model
        assert checker.most_claims >= 1
        assert getattr(checker, "most_tokens", 1) >= 1
        assert identity_json(checker) == identity_json(checker)

    def test_each_claim_has_its_probability_in_order(self) -> None:
        """Sync and async, in threads, tasks and loops: one for each claim, from 0 to 1, whatever the other claims."""
        checker = self.checker()
        text, claims = "Water is wet. Fire is hot.", ["Water is wet.", "Fire is cold.", "It is late."]
        most = claims[: checker.most_claims]
        given = [most, most[::-1], claims[1:2], claims[2:]]
        sync, asynchronous = partial(checker.check, text), partial(checker.acheck, text)
        found: dict[str, float] = {}
        for asked, probabilities in _answers(sync, asynchronous, given):
            assert len(probabilities) == len(asked)
            for claim, probability in zip(asked, probabilities, strict=True):
                assert 0 <= probability <= 1
                assert abs(probability - found.setdefault(claim, probability)) < 0.01


class EmbedderContract:
    """Tests that any `Embedder` must pass. Define `embedder`."""

    def embedder(self) -> Embedder:
        """Return the embedder under test, ready to embed."""
        raise NotImplementedError

    def test_it_is_an_embedder(self) -> None:
        """It has the protocol's members, a name and, if any, an identity that JSON can hold."""
        embedder = self.embedder()
        assert isinstance(embedder, Embedder)
        assert embedder.model
        assert identity_json(embedder) == identity_json(embedder)

    def test_one_row_per_text_in_order(self) -> None:
        """Both halves place the same texts at the same place, one row each, inside a running loop too."""
        import numpy as np

        embedder = self.embedder()
        texts = ["A cat sat.", "Tax law.", "A cat sat."]
        first, *others = [np.asarray(rows) for _, rows in _answers(embedder.embed, embedder.aembed, [texts])]
        assert first.shape[0] == 3
        assert first.dtype == np.float32
        assert np.isfinite(first).all()
        for rows in others:
            assert rows.shape == first.shape
            assert np.allclose(rows, first, atol=1e-3)
        assert np.allclose(first[0], first[2], atol=1e-3)
        assert not np.allclose(first[0], first[1], atol=1e-3)


def _answers(
    sync: Callable[[A], B], asynchronous: Callable[[A], Coroutine[Any, Any, B]], given: Sequence[A]
) -> list[tuple[A, B]]:
    """The answers of both halves, beside what was asked: outside of a loop, in one, and in another after that."""

    async def inside() -> list[B]:
        return [sync(given[0]), *await asyncio.gather(*map(asynchronous, given))]

    with ThreadPoolExecutor(4) as pool:
        replies = [*pool.map(sync, given), *asyncio.run(inside()), *asyncio.run(inside())]
    return list(zip([*given, given[0], *given, given[0], *given], replies, strict=True))
