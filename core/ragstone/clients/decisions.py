"""Decision models over HTTP, in the two forms that servers speak."""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any

from ragstone.clients.access import AnswerError, missing, read_json, resolve, with_path
from ragstone.clients.compatible import OpenAICompatible
from ragstone.clients.connection import Ask, Client
from ragstone.judge import DecisionReply, DecisionRequest
from ragstone.judging.prompt import fence
from ragstone.options import Count, checked
from ragstone.plain import as_count, as_dict

Probabilities = Mapping[str, float] | None


class _Decisions(Client, ABC):
    """What both clients share."""

    # Class, model and address alone make this judge.
    identity = ""
    _path: str

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        most_questions: int = 400,
        timeout: float = 120.0,
        max_retries: int = 2,
        max_concurrency: int = 16,
        max_input_tokens: int | None = None,
    ) -> None:
        super().__init__(model, resolve(base_url, api_key, os.environ), timeout, max_retries, max_concurrency)
        self.most_questions: int = checked("most_questions", most_questions, Count)
        self.max_input_tokens = max_input_tokens

    def decide(self, request: DecisionRequest, /) -> DecisionReply:
        """Answer one request, blocking the calling thread.

        Raises:
            openai.OpenAIError: The server cannot be reached or refused, after the retries.
            AnswerError: The server's answer is none of this form.
        """
        return self._run(partial(self._decided, request))

    async def adecide(self, request: DecisionRequest, /, *, max_retries: int | None = None) -> DecisionReply:
        """Answer one request on the running event loop; otherwise as `decide`."""
        return await self._arun(partial(self._decided, request), max_retries)

    @abstractmethod
    def _questions(self, request: DecisionRequest) -> dict[str, Any]:
        """Return the request's body but for the model."""

    @abstractmethod
    def _answers(self, body: Mapping[str, Any]) -> Mapping[str, Probabilities]:
        """Return the answers of a reply's body, which may be of another form and then fail it as it is read."""

    async def _decided(self, request: DecisionRequest, ask: Ask) -> DecisionReply:
        server = self._access
        asked = {"model": self.model, **self._questions(request)}
        body = read_json(await ask(self._path, asked), server, strict=True)
        if "answers" not in body:
            raise missing(body, "answers", server)
        try:
            answers = self._answers(body)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise AnswerError(f"{server.shown}{self._path} answered in another form: {why}") from None
        used = as_dict(body.get("usage"))
        return DecisionReply(answers, as_count(used.get("input_tokens")), as_count(used.get("output_tokens")))


class OpenAIDecisions(_Decisions):
    """A decision model behind OpenAI's `POST /v1/decisions`: OpenAI's, SGLang's, Fireworks', LiteLLM's proxy.

    The texts are the input, fenced; each question is a `choice`. A question that the model refuses is refused alone.

    Args:
        model: The model's name, such as "gpt-6-luna".
        base_url: The API's root; None: OPENAI_BASE_URL, else OpenAI.
        api_key: The key; None: OPENAI_API_KEY, if the server is OpenAI or that of OPENAI_BASE_URL.
        most_questions: Questions in one request at most: 400 at OpenAI.
        timeout: Seconds for a call in all.
        max_retries: How often the `openai` package tries a failed call again outside of a run.
        max_concurrency: Calls in flight at most.
        max_input_tokens: The longest request that the model takes, in tokens; None: unknown.

    Raises:
        ImportError: The `openai` package is not installed.
        ValueError: An argument is out of range, or there is no key for OpenAI.

    Source:
        OpenAI, "Decisions" (API reference, `client.decisions.create`).

    Example:
        >>> OpenAIDecisions("gpt-6-luna", base_url="http://127.0.0.1:30000/v1")
        OpenAIDecisions('gpt-6-luna', base_url='http://127.0.0.1:30000/v1')
    """

    _path = "/decisions"

    def _questions(self, request: DecisionRequest) -> dict[str, Any]:
        questions = [
            {
                "type": "choice",
                "name": name,
                "instructions": question.instruction,
                "choices": [{"value": choice} for choice in question.choices],
            }
            for name, question in request.questions.items()
        ]
        return {"input": fence(request.texts), "questions": questions}

    def _answers(self, body: Mapping[str, Any]) -> Mapping[str, Probabilities]:
        found: dict[str, Probabilities] = {}
        for answer in body["answers"]:
            name, kind = str(answer["name"]), answer["type"]
            if name in found:
                raise ValueError(f"answer {name!r} is given twice")
            if kind not in ("choice", "refusal"):
                raise ValueError(f"answer {name!r} is of the type {kind!r}, not choice or refusal")
            shares: list[Any] = [] if kind == "refusal" else answer["probabilities"]
            values = {str(each["value"]): each["probability"] for each in shares}
            if len(values) < len(shares):
                raise ValueError(f"answer {name!r} has a choice twice")
            found[name] = None if kind == "refusal" else values
        return found


class SystemOne(_Decisions):
    """A decision model behind `POST /v1/systemone`: Ollama, vLLM, Jev, OpenRouter, Fireworks, LiteLLM's proxy.

    The texts are the state; each question is a `choice`.

    Args:
        url: The server; /v1 is added to an address without a path.
        model: The model's name.
        api_key: The key, if the server wants one.
        options: `most_questions` (128 by default, as the state and the longest question share 32,000 tokens at Jev),
            `timeout`, `max_retries`, `max_concurrency` and `max_input_tokens`: as of `OpenAIDecisions`.

    Raises:
        ImportError: The `openai` package is not installed.
        ValueError: An argument is out of range.

    Source:
        TypeSafe, "System One" (API reference); Ollama, "/v1/systemone"; vLLM, "System One API".

    Example:
        >>> SystemOne("http://127.0.0.1:11434", "tinyjev")
        SystemOne('tinyjev', base_url='http://127.0.0.1:11434/v1')
    """

    _path = "/systemone"

    def __init__(self, url: str, model: str, api_key: str | None = None, **options: Any) -> None:  # noqa: ANN401
        options = {"most_questions": 128, **options}
        super().__init__(model, base_url=with_path(url), api_key=api_key, **options)

    def _questions(self, request: DecisionRequest) -> dict[str, Any]:
        questions = {
            name: {
                "type": "choice",
                "instructions": question.instruction,
                "criteria": dict.fromkeys(question.choices),
            }
            for name, question in request.questions.items()
        }
        return {"state": dict(request.texts), "questions": questions}

    def _answers(self, body: Mapping[str, Any]) -> Mapping[str, Probabilities]:
        return {name: {**answer["probabilities"]} for name, answer in body["answers"].items()}


_MODEL_AT = re.compile(r"(?:(?P<model>.+)@)?(?P<url>https?://.*)")


def make_openai_decisions(name: str) -> OpenAIDecisions:
    """Return the client that "openai-decisions:MODEL" or "openai-decisions:MODEL@URL" names.

    Example:
        >>> make_openai_decisions("qwen3@http://127.0.0.1:30000")
        OpenAIDecisions('qwen3', base_url='http://127.0.0.1:30000/v1')
    """
    model, url = _model_at(name)
    return OpenAIDecisions(model, base_url=url)


def make_system_one(name: str) -> SystemOne:
    """Return the client that "systemone:URL" or "systemone:MODEL@URL" names; a bare URL is asked for its first model.

    Raises:
        ValueError: There is no URL.

    Example:
        >>> make_system_one("tinyjev@http://127.0.0.1:11434")
        SystemOne('tinyjev', base_url='http://127.0.0.1:11434/v1')
    """
    model, url = _model_at(name)
    if url is None:
        raise ValueError(f"systemone:{name}: write systemone:URL or systemone:MODEL@URL")
    return SystemOne(url, model)


def _model_at(name: str) -> tuple[str, str | None]:
    """Return model and address of "MODEL", "MODEL@URL" or "URL", which is asked for its first model."""
    match = _MODEL_AT.fullmatch(name)
    if match is None:
        return name, None
    url = with_path(match["url"])
    return match["model"] or OpenAICompatible.at(url).model, url
