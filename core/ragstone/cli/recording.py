"""`ragstone score --record` and `--replay`: the replies of a run's models by request, kept and given again."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ragstone.errors import RagstoneError
from ragstone.identity import reply_key
from ragstone.judge import (
    BaseDecisionModel,
    BaseEmbedder,
    BaseLLM,
    DecisionReply,
    DecisionRequest,
    LLMReply,
    LLMRequest,
)
from ragstone.registry import make_metric, metric_name
from ragstone.results.record import decode_reply, encode_reply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragstone.metrics import Metric

Role = Literal["judge", "writer", "embedder", "demo"]
_FACTS = ("model", "asking", "gives_probabilities", "most_questions", "max_input_tokens")
_ASKED = ("agenerate", "adecide", "aembed")  # what a run calls, on its one event loop


class RecordingError(RagstoneError, ValueError):
    """A recording that cannot be read; the message says why."""


class Recorder:
    """Writes each reply of a run's models to a file, once, by its request.

    Args:
        path: The file; one that is there is replaced.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        self._written: set[str] = set()
        self._models: dict[tuple[Role, int], _Recorded] = {}
        self._write("head", {"ragstone_recording": 1})

    def recorded(self, metric: "Metric") -> "Metric":
        """Return a metric whose models' replies are kept."""
        changes: dict[str, Any] = {}
        for field, role, model in (
            ("llm", "judge", metric.llm),
            ("writer", "writer", metric.writer),
            ("embedder", "embedder", metric.judge_embedder),
        ):
            if model is not None:
                changes[field] = self._of(role, model)
        if "embedder" in changes:
            self._write(f"embeds {metric.name}", {"embeds": metric.name})
        return replace(metric, **changes)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def keep(self, role: Role, request: object, reply: object) -> None:
        """Keep a reply."""
        if isinstance(request, (LLMRequest, DecisionRequest)) and isinstance(reply, (LLMReply, DecisionReply)):
            key = reply_key(request, role)
            self._write(key, {"of": role, "key": key, "reply": encode_reply(reply)})
        elif isinstance(request, Sequence):
            texts, rows = cast("Sequence[str]", request), cast("Sequence[Sequence[float]]", reply)
            for text, row in zip(texts, rows, strict=True):
                key = text_key(text)
                self._write(key, {"of": role, "key": key, "vector": [float(number) for number in row]})

    def _of(self, role: Any, model: Any) -> "_Recorded":  # noqa: ANN401 - a Role and a model
        known = self._models.get((role, id(model)))
        if known is None:
            facts = {name: getattr(model, name) for name in _FACTS if getattr(model, name, None) is not None}
            self._write(f"is {role}", {"of": role, "is": facts})
            known = self._models[role, id(model)] = _Recorded(model, partial(self.keep, role))
        return known

    def _write(self, key: str, line: Mapping[str, object]) -> None:
        if key not in self._written:
            self._written.add(key)
            self._file.write(json.dumps(line) + "\n")


class _Recorded:
    """A model whose replies are kept; all else is the model's own."""

    def __init__(self, model: object, keep: Callable[[object, object], None]) -> None:
        self._model, self._keep = model, keep

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the model's
        found = getattr(self._model, name)

        async def ask(request: object) -> object:
            reply = await found(request)
            self._keep(request, reply)
            return reply

        return ask if name in _ASKED else found


class _Replayed:
    """What a model answered, by request."""

    def __init__(self, path: str | Path, role: Role, facts: Mapping[str, Any], replies: Mapping[str, Any]) -> None:
        self._path, self._role, self._replies = path, role, replies
        vars(self).update(facts)

    def look_up(self, key: str, what: str) -> Any:  # noqa: ANN401 - a reply or a vector
        """Return what was kept under a key."""
        try:
            return self._replies[key]
        except KeyError:
            raise LookupError(f"{self._path} holds no reply to {what} of the {self._role}") from None


class ReplayedLLM(_Replayed, BaseLLM):
    """An LLM that answers as it once did."""

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Return the reply that was kept."""
        reply: LLMReply = decode_reply(self.look_up(reply_key(request, self._role), request.task))  # type: ignore[assignment]
        return reply


class _DecisionModel(_Replayed, BaseDecisionModel):
    def decide(self, request: DecisionRequest, /) -> DecisionReply:
        reply: DecisionReply = decode_reply(self.look_up(reply_key(request, self._role), request.task))  # type: ignore[assignment]
        return reply


class ReplayedEmbedder(_Replayed, BaseEmbedder):
    """An embedder that answers as it once did."""

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return the vectors that were kept."""
        import numpy as np

        return np.array([self.look_up(text_key(text), "a text") for text in texts], dtype=np.float32)


def replayed(path: str | Path) -> tuple[dict[Role, Any], set[str]]:
    """Return the models of a recording by their role, and the names of the metrics that embedded.

    Raises:
        RecordingError: The file holds no recording, or is damaged.
    """
    facts: dict[Role, dict[str, Any]] = {}
    replies: dict[str, Any] = {}
    embeds: set[str] = set()
    try:
        with Path(path).open(encoding="utf-8") as lines:
            if json.loads(next(lines, "null")) != {"ragstone_recording": 1}:
                raise RecordingError(f"{path}: is no recording of `ragstone score --record`")
            for line in map(json.loads, lines):
                if "embeds" in line:
                    embeds.add(line["embeds"])
                elif "is" in line:
                    facts[line["of"]] = line["is"]
                else:
                    replies[line["key"]] = line["vector"] if "vector" in line else line["reply"]
    except (ValueError, KeyError, TypeError) as error:
        raise error if isinstance(error, RecordingError) else RecordingError(f"{path}: is damaged ({error})") from error
    models: dict[Role, Any] = {}
    for role, own in facts.items():
        kind = ReplayedEmbedder if role == "embedder" else _DecisionModel if "most_questions" in own else ReplayedLLM
        models[role] = kind(path, role, own, replies)
    return models, embeds


def replayed_metrics(path: str, options: Mapping[str, Mapping[str, Any]]) -> "list[Metric]":
    """Return the metrics, by name with their options, over the models of a recording.

    Raises:
        RecordingError: As `replayed`.
        RegistryError: As `make_metric`.
    """
    models, embeds = replayed(path)
    metrics: list[Metric] = []
    for name, values in options.items():
        embedder = models.get("embedder") if metric_name(name) in embeds else None
        metrics.append(make_metric(name, values, models.get("judge"), embedder, models.get("writer")))
    return metrics


def text_key(text: str) -> str:
    """Return the key of a text's vector."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=b"text").hexdigest()
