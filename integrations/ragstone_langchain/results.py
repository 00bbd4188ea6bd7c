"""An outcome as LangSmith, openevals and LangChain's own evaluators pass results on."""

from typing import Any

from ragstone.metrics import Metric
from ragstone.outcome import Outcome, Score


def to_result(key: str, metric: Metric, outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as a result: plain values, ready for JSON, in the dict that LangSmith's types ask for.

    What is not scored has no score: never 0.

    Returns:
        `key`; `score`, None where there is none; `comment`, what the score rests on or why there is none; `metadata`
        with `metric`, `version`, `judge`, `passed`, `unscored` (one word, or None), `breakdown`, `verdicts`, `usage`.

    Example:
        >>> from ragstone import ContextRelevancy, Unscored
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": []}))
        >>> missing = Unscored(metric=metric.name, reason="missing_input", detail="response: is missing", version="1")
        >>> result = to_result("relevancy", metric, missing)
        >>> result["score"], result["comment"]
        (None, 'missing_input: response: is missing')
    """
    scored = outcome if isinstance(outcome, Score) else None
    said = outcome.model_dump(mode="json")
    return {
        "key": key,
        "score": None if scored is None else scored.value,
        "comment": outcome.reason if isinstance(outcome, Score) else f"{outcome.reason}: {outcome.detail}",
        "metadata": {
            "metric": outcome.metric,
            "version": outcome.version,
            "judge": metric.judge.model,
            "passed": None if scored is None else scored.passed,
            "unscored": None if scored is not None else outcome.reason,
            "breakdown": said.get("breakdown", {}),
            "verdicts": said.get("verdicts", []),
            "usage": said["usage"],
        },
    }


def to_strings_result(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result in the form of LangChain's string evaluators, with their keys.

    Example:
        >>> result = {"key": "k", "score": 0.9, "comment": "Good.", "metadata": {"passed": True}}
        >>> to_strings_result(result)
        {'score': 0.9, 'value': 'passed', 'reasoning': 'Good.', 'metadata': {'passed': True}}
    """
    words = {True: "passed", False: "failed", None: None}
    return {
        "score": result["score"],
        "value": words[result["metadata"]["passed"]],
        "reasoning": result["comment"],
        "metadata": result["metadata"],
    }
