"""DeepEval's metrics beside `ragstone_compat.deepeval`: the same 30 samples, the same answers of the judge.

    python benchmarks/parity/beside_deepeval.py

It needs deepeval and ragstone in one environment and asks no model. It prints a table and, below it, what differs. It
fails where a number of equal scores is not the one that docs/coming-from-deepeval.md says.
"""

import os
import random
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.metadata import version
from io import StringIO
from typing import Any

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"  # read when it is imported

from ragstone import LLMRequest
from ragstone.testing import FakeLLM

SAMPLES = 30
EQUAL = {
    "AnswerRelevancyMetric": 30,
    "ContextualPrecisionMetric": 30,
    "ContextualRecallMetric": 30,
    "ContextualRelevancyMetric": 30,
    "FaithfulnessMetric": 30,
    "GEval": 30,
    "SummarizationMetric": 27,
}
"""How many of the scores are equal."""
WORDS = {"supported": "yes", "contradicted": "no", "not_in_source": "borderline"}
GRADES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
Facts = Mapping[str, Any]


def facts(seed: int) -> Facts:
    """Return what the judge finds in a sample."""
    draw = random.Random(seed)

    def several(words: tuple[str, ...], most: int) -> list[str]:
        return draw.choices(words, k=draw.randint(1, most))

    return {
        "claims": several(("supported", "supported", "contradicted", "not_in_source"), 5),
        "original": draw.choices(("yes", "no"), k=3),
        "summary": draw.choices(("yes", "yes", "no"), k=3),
        "statements": several(("yes", "yes", "no"), 5),
        "contexts": several(("yes", "no"), 4),
        "grade": draw.randint(0, 10),
    }


def case_of(found: Facts) -> dict[str, Any]:
    """Return the fields of a sample, with one sentence for each thing that is found."""
    sentences = [f"Sentence {i} of the text." for i in range(len(found["contexts"]))]
    return {
        "input": "ORIGINAL text.",
        "actual_output": "SUMMARY text.",
        "expected_output": "The reference.",
        "retrieval_context": sentences,
    }


def ours(found: Facts) -> FakeLLM:
    """Return ragstone's judge."""

    def numbered(answers: list[str], *, evidence: bool = False) -> dict[str, Any]:
        return {str(i): {"evidence": [], "verdict": a} if evidence else a for i, a in enumerate(answers, 1)}

    def reply(request: LLMRequest) -> object:
        metric, step = request.task.split(".")
        items = found["statements" if metric == "relevant_share" else "claims"]
        if step == "relevant":
            listed = "Sentence" in request.user
            return {"answers": numbered(found["contexts" if listed else "statements"])}
        return {
            "claims": {"claims": [f"Item {i}." for i in range(len(items))]},
            "verdicts": {"verdicts": numbered(found["claims"], evidence=True)},
            "source_answers": {"answers": numbered(found["original"])},
            "summary_answers": {"answers": numbered(found["summary"])},
            "useful": {"answers": numbered(found["contexts"])},
            "verdict": {"evidence": [], "verdict": GRADES[found["grade"]]},
        }[step]

    return FakeLLM(reply)


def theirs(found: Facts) -> Any:  # noqa: ANN401 - of a class of DeepEval's
    """Return DeepEval's judge."""
    from deepeval.models import DeepEvalBaseLLM

    class Judge(DeepEvalBaseLLM):
        asked = 0  # contexts of ContextualRelevancyMetric, one a call

        def load_model(self) -> None:
            pass

        def get_model_name(self) -> str:
            return "replies"

        async def a_generate(self, prompt: str, schema: Any) -> Any:  # noqa: ANN401
            return self.generate(prompt, schema)

        def generate(self, prompt: str, schema: Any) -> Any:  # noqa: ANN401
            metric = schema.__module__.split(".")[2]
            if schema.__name__ == "Answers":
                return schema(answers=found["original" if "ORIGINAL" in prompt else "summary"])
            if schema.__name__ == "ReasonScore":
                return schema(reason="", score=found["grade"])
            if schema.__name__ in ("Claims", "Statements", "Truths", "Steps"):
                items = found["statements" if metric == "answer_relevancy" else "claims"]
                return schema(**{schema.__name__.lower(): [f"Item {i}." for i in range(len(items))]})
            if "verdicts" not in schema.model_fields:
                return schema(reason="")
            answers = {
                "answer_relevancy": found["statements"],
                "contextual_precision": found["contexts"],
                "contextual_recall": ["yes" if word == "supported" else "no" for word in found["claims"]],
            }.get(metric, [WORDS[word] for word in found["claims"]])
            if metric == "contextual_relevancy":
                (number,) = (i for i in range(9) if f"Sentence {i} " in prompt)
                answers = [found["contexts"][number]]
            return schema(verdicts=[{"verdict": each, "reason": "", "statement": ""} for each in answers])

    return Judge()


def score(library: str, name: str, found: Facts, judge: object) -> float | None:
    """Return a library's score of a sample."""
    metrics, cases = import_module(f"{library}.metrics"), import_module(f"{library}.test_case")
    options: dict[str, Any] = {"model": judge, "async_mode": False}
    if name == "GEval":
        params = [cases.SingleTurnParams.INPUT, cases.SingleTurnParams.ACTUAL_OUTPUT]
        options |= {"name": "good", "criteria": "Is it good?", "evaluation_params": params}
    if name == "SummarizationMetric":
        options["assessment_questions"] = ["Is it?", "Was it?", "Can it be?"]
    metric = getattr(metrics, name)(**options)
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # DeepEval's progress
        metric.measure(cases.LLMTestCase(**case_of(found)))
    value: float | None = metric.score
    return value


def main() -> None:
    """Compare and print."""
    failed, differ = False, list[str]()
    print(f"| DeepEval {version('deepeval')} | equal, of {SAMPLES} |\n|---|--:|")
    for name, expected in EQUAL.items():
        equal = 0
        for seed in range(SAMPLES):
            found = facts(seed)
            own = score("ragstone_compat.deepeval", name, found, ours(found))
            peer = score("deepeval", name, found, theirs(found))
            same = own is not None and peer is not None and abs(own - peer) < 1e-9
            equal += same
            if not same:
                differ.append(f"{name}, sample {seed}: here {own}, there {peer}; {dict(found)}")
        failed = failed or equal != expected
        print(f"| `{name}` | {equal} |")
    print("\n".join(["", *differ]))
    sys.exit(failed)


if __name__ == "__main__":
    main()
