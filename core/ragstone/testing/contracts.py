"""What every adapter must do, as classes of tests to inherit from. Needs no pytest to import.

class TestMyLLM(LLMContract):
    def llm(self):
        return MyLLM(...)
"""

import asyncio
import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ragstone.identity import identity_json
from ragstone.judge import LLM, DecisionModel, DecisionReply, DecisionRequest, Embedder, LLMReply, LLMRequest, Question
from ragstone.judging.reply import as_shares

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
        """Sync and async give a reply of the same form: outside of a loop, in one, and in another after that."""
        llm = self.llm()

        async def inside() -> list[LLMReply]:
            return [llm.generate(self.request()), await llm.agenerate(self.request())]

        for reply in [llm.generate(self.request()), *asyncio.run(inside()), *asyncio.run(inside())]:
            assert isinstance(reply, LLMReply)
            assert isinstance(reply.text, str)
            for count in (reply.input_tokens, reply.output_tokens):
                assert count is None or count >= 0

    def test_many_at_once(self) -> None:
        """Threads and tasks share it."""
        llm = self.llm()
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(llm.generate, [self.request() for _ in range(4)]))

        async def tasks() -> list[LLMReply]:
            return list(await asyncio.gather(*(llm.agenerate(self.request()) for _ in range(4))))

        assert all(isinstance(reply, LLMReply) for reply in [*replies, *asyncio.run(tasks())])

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
        """Sync and async, outside of a loop and in one: each from 0 to 1 with a sum of 1, or None for a refusal."""
        model, request = self.model(), self.request()

        async def inside() -> list[DecisionReply]:
            return [model.decide(request), await model.adecide(request)]

        for reply in [model.decide(request), *asyncio.run(inside()), *asyncio.run(inside())]:
            assert reply.probabilities.keys() == request.questions.keys()
            for name, question in request.questions.items():
                shares = reply.probabilities[name]
                if shares is not None:
                    assert shares.keys() == set(question.choices)
                    assert all(0 <= share <= 1 for share in shares.values())
                    assert abs(sum(shares.values()) - 1) < 0.02

    def test_many_at_once(self) -> None:
        """Threads and tasks share it."""
        model = self.model()
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(model.decide, [self.request(i) for i in range(1, 5)]))

        async def tasks() -> list[DecisionReply]:
            return list(await asyncio.gather(*(model.adecide(self.request(i)) for i in range(1, 5))))

        for i, reply in enumerate([*replies, *asyncio.run(tasks())]):
            assert len(reply.probabilities) == i % 4 + 2


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

        async def inside() -> list[Any]:
            return [embedder.embed(texts), await embedder.aembed(texts)]

        rows: Any = np.asarray(embedder.embed(texts))
        assert rows.shape[0] == 3
        assert rows.dtype == np.float32
        assert np.isfinite(rows).all()
        for again in asyncio.run(inside()):
            other: Any = np.asarray(again)
            assert rows.shape == other.shape
            assert np.allclose(rows, other, atol=1e-3)
        assert np.allclose(rows[0], rows[2], atol=1e-3)
        assert not np.allclose(rows[0], rows[1], atol=1e-3)
