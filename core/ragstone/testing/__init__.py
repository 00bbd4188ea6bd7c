"""For your tests: fakes for the judge's words, the contract of every LLM and Embedder, assertions of scores."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone.testing.assertions import assert_not_worse as assert_not_worse, assert_score as assert_score
    from ragstone.testing.contracts import (
        ClaimCheckerContract as ClaimCheckerContract,
        DecisionContract as DecisionContract,
        EmbedderContract as EmbedderContract,
        LLMContract as LLMContract,
    )
    from ragstone.testing.fake_checker import FakeChecker as FakeChecker
    from ragstone.testing.fakes import (
        FakeDecisions as FakeDecisions,
        FakeEmbedder as FakeEmbedder,
        FakeLLM as FakeLLM,
        Reply as Reply,
        by_step as by_step,
    )
else:
    from ragstone._front_door import front_door

    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone.testing.assertions": "assert_not_worse assert_score",
            "ragstone.testing.contracts": "ClaimCheckerContract DecisionContract EmbedderContract LLMContract",
            "ragstone.testing.fake_checker": "FakeChecker",
            "ragstone.testing.fakes": "FakeDecisions FakeEmbedder FakeLLM Reply by_step",
        },
    )
