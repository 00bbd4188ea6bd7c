"""A claim checker over HTTP."""

from collections.abc import Sequence

from ragstone.clients.access import AnswerError
from ragstone.clients.compatible import OpenAICompatible
from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.prompt import sendable

_YES, _NO = "Yes", "No"


class MiniCheck(OpenAICompatible):
    r"""Bespoke-MiniCheck, a claim checker, behind a server that speaks OpenAI's API, such as Ollama or vLLM.

    Each claim is one chat completion: "Document: ...\nClaim: ...", which the model answers with Yes or No. The
    probability comes from the log-probabilities of that word; without them it is 1 or 0. The weights are not for
    commercial use. Arguments are those of `OpenAICompatible`.

    Attributes:
        most_claims: 1: a claim a call.
        most_tokens: The longest text of a call. Ollama reads 4,096 tokens where nothing else is set, and cuts the rest
            off without a word; where your server reads more, set more.

    Source:
        Ollama, "bespoke-minicheck" (library page).

    Example:
        >>> MiniCheck("bespoke-minicheck", base_url="http://127.0.0.1:11434/v1")
        MiniCheck('bespoke-minicheck', base_url='http://127.0.0.1:11434/v1')
    """

    most_claims: int = 1
    most_tokens: int = 3_000

    def check(self, text: str, claims: Sequence[str], /) -> Sequence[float]:
        """Return for each claim the probability that the text supports it, blocking the calling thread.

        Raises:
            openai.OpenAIError: The server cannot be reached or refused, after the retries.
            AnswerError: The server's answer is neither Yes nor No.
        """
        return [self._support(self.generate(_request(text, claim))) for claim in claims]

    async def acheck(self, text: str, claims: Sequence[str], /, *, max_retries: int | None = None) -> Sequence[float]:
        """Return for each claim the probability that the text supports it; otherwise as `check`."""
        replies = [await self.agenerate(_request(text, claim), max_retries=max_retries) for claim in claims]
        return [self._support(reply) for reply in replies]

    def _support(self, reply: LLMReply) -> float:
        if reply.text not in (_YES, _NO):
            raise AnswerError(f"{self._access.shown} answered {reply.text[:80]!r}, neither {_YES} nor {_NO}")
        return reply.probabilities[_YES] if reply.probabilities else float(reply.text == _YES)


def _request(text: str, claim: str) -> LLMRequest:
    prompt = sendable(f"Document: {text}\nClaim: {claim}")
    return LLMRequest("checker.claim", "", prompt, {"type": "string", "enum": [_YES, _NO]}, choices=(_YES, _NO))
