"""ragas' metrics beside `ragstone_compat.ragas`: the same 30 samples, the same answers of the judge.

    python benchmarks/parity/beside_ragas.py

It needs ragas and ragstone in one environment and asks no model: ragas 0.4.3 with langchain-community 0.4.1 (eight
metrics), or ragas 0.1.10 (ContextRelevancy, which later releases do not have). It prints a table and, below it, what
differs. It fails where a number of equal scores is not the one that docs/coming-from-ragas.md says.
"""

import asyncio
import os
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from importlib import import_module
from importlib.metadata import version
from io import StringIO
from typing import Any

os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # read when it is imported

from ragstone import LLMRequest
from ragstone.testing import FakeEmbedder, FakeLLM

SAMPLES = 30
EQUAL = {
    "Faithfulness": 30,
    "AnswerRelevancy": 30,
    "ContextPrecision": 30,
    "ContextRecall": 30,
    "FactualCorrectness": 30,
    "SummaryScore": 30,
    "AnswerCorrectness": 30,
    "SemanticSimilarity": 30,
}
"""How many of the scores of ragas 0.4.3 are equal."""
FIELDS: Mapping[str, Sequence[str]] = {
    "Faithfulness": ("user_input", "response", "retrieved_contexts"),
    "AnswerRelevancy": ("user_input", "response"),
    "ContextPrecision": ("user_input", "reference", "retrieved_contexts"),
    "ContextRecall": ("user_input", "reference", "retrieved_contexts"),
    "FactualCorrectness": ("response", "reference"),
    "SummaryScore": ("response", "reference_contexts"),
    "AnswerCorrectness": ("user_input", "response", "reference"),
    "SemanticSimilarity": ("response", "reference"),
}
Facts = Mapping[str, Any]


def facts(seed: int) -> Facts:
    """Return what the judge finds in a sample."""
    draw = random.Random(seed)

    def several(most: int) -> list[bool]:
        return draw.choices((True, True, False), k=draw.randint(1, most))

    return {
        "response": several(5),  # claims that the other text supports
        "reference": several(5),
        "contexts": several(4),
        "answers": several(5),
        "copied": draw.randint(0, 6),
        "length": draw.randint(1, 60),
        "evades": draw.random() < 0.2,
    }


def sample_of(found: Facts) -> dict[str, Any]:
    """Return the fields of a sample, with one sentence for each thing that is found."""
    contexts = [f"Context {i} says this. It says that." for i in range(len(found["contexts"]))]
    return {
        "user_input": "What is asked?",
        "response": "RESPONSE " + "x" * found["length"],
        "reference": "The reference.",
        "retrieved_contexts": contexts,
        "reference_contexts": contexts,
    }


def ours(found: Facts) -> FakeLLM:
    """Return ragstone's judge."""

    def checked(name: str) -> dict[str, Any]:
        words = ["supported" if each else "not_in_source" for each in found[name]]
        return {str(i): {"evidence": [], "verdict": word} for i, word in enumerate(words, 1)}

    def numbered(name: str) -> dict[str, str]:
        return {str(i): "yes" if each else "no" for i, each in enumerate(found[name], 1)}

    def items(name: str) -> list[str]:
        return [f"Item {i}." for i in range(len(found[name]))]

    def reply(request: LLMRequest) -> object:
        metric, step = request.task.split(".")
        if metric in ("factual_correctness", "answer_correctness"):
            of = items if step == "claims" else checked
            return {name: of(name) for name in ("response", "reference")}
        claims = "reference" if metric == "context_recall" else "response"
        question = {"noncommittal": found["evades"]}
        return {
            "claims": lambda: {"claims": items(claims)},
            "verdicts": lambda: {"verdicts": checked(claims)},
            "useful": lambda: {"answers": numbered("contexts")},
            "answers": lambda: {"answers": numbered("answers")},
            "copied": lambda: {"sentences": copied(found)},
            "questions": lambda: (
                {"items": [{"keyphrase": text, "question": text} for text in items("answers")]}
                if metric == "summarization_score"
                else {"questions": [{"question": f"Question {i}?", **question} for i in range(3)]}
            ),
        }[step]()

    return FakeLLM(reply)


def copied(found: Facts) -> str:
    """Return what the judge copies of the contexts."""
    sentences = ["Context 0 says this.", "It says that."] * 3
    return " ".join(sentences[: found["copied"]]) or "Insufficient Information."


def theirs(found: Facts) -> Any:  # noqa: ANN401 - of a class of ragas'
    """Return the judge of ragas 0.4.3."""
    from ragas.llms import InstructorBaseRagasLLM

    class Judge(InstructorBaseRagasLLM):
        is_async = True

        def __init__(self) -> None:
            self.asked = 0

        def generate(self, prompt: str, response_model: Any) -> Any:  # noqa: ANN401
            raise NotImplementedError

        async def agenerate(self, prompt: str, response_model: Any) -> Any:  # noqa: ANN401
            self.asked += 1
            form, text = response_model.__name__, prompt[prompt.rfind("nput:") :]
            if form in ("StatementGeneratorOutput", "ClaimDecompositionOutput"):
                name = "response" if "RESPONSE" in text else "reference"
                claims = [f"{name} {i}" for i in range(len(found[name]))]
                return response_model(**{(form.startswith("S") and "statements") or "claims": claims})
            verdict = {"statement": "", "reason": ""}
            if form == "NLIStatementOutput":
                name = "reference" if "reference 0" in text else "response"
                return response_model(statements=[{**verdict, "verdict": int(each)} for each in found[name]])
            if form == "ClassificationWithReason":
                right = sum(found["response"])
                wrong, absent = len(found["response"]) - right, found["reference"].count(False)
                return response_model(TP=[verdict] * right, FP=[verdict] * wrong, FN=[verdict] * absent)
            return response_model(
                **{
                    "AnswerRelevanceOutput": lambda: {
                        "question": f"Question {self.asked - 1}?",
                        "noncommittal": int(found["evades"]),
                    },
                    "ContextPrecisionOutput": lambda: {
                        "reason": "",
                        "verdict": int(found["contexts"][self.asked - 1]),
                    },
                    "ContextRecallOutput": lambda: {
                        "classifications": [{**verdict, "attributed": int(each)} for each in found["reference"]]
                    },
                    "ExtractedKeyphrases": lambda: {"keyphrases": ["a phrase"]},
                    "QuestionsGenerated": lambda: {"questions": ["Is it?"] * len(found["answers"])},
                    "AnswersGenerated": lambda: {"answers": [str(int(each)) for each in found["answers"]]},
                }[form]()
            )

    return Judge()


def their_embedder() -> Any:  # noqa: ANN401 - of a class of ragas'
    """Return the embedder of ragas 0.4.3, with the vectors of ragstone's."""
    from ragas.embeddings.base import BaseRagasEmbedding

    class Embedder(BaseRagasEmbedding):
        def embed_text(self, text: str, **_: object) -> list[float]:
            return [float(x) for x in FakeEmbedder().embed([text])[0]]

        async def aembed_text(self, text: str, **_: object) -> list[float]:
            return self.embed_text(text)

    return Embedder()


def score(library: str, name: str, found: Facts, judge: object, embedder: object) -> float:
    """Return the score of a sample by a metric of ragas 0.4.3, or of the same name here."""
    kind = getattr(import_module(f"{library}.metrics.collections"), name)
    models = {} if name == "SemanticSimilarity" else {"llm": judge}
    if name in ("AnswerRelevancy", "AnswerCorrectness", "SemanticSimilarity"):
        models["embeddings"] = embedder
    sample = sample_of(found)
    result = asyncio.run(kind(**models).ascore(**{field: sample[field] for field in FIELDS[name]}))
    return float(result.value)


def old_context_relevancy(found: Facts) -> float:
    """Return the score of ragas 0.1.10."""
    from langchain_core.outputs import Generation, LLMResult
    from ragas.llms import BaseRagasLLM
    from ragas.metrics import ContextRelevancy
    from ragas.run_config import RunConfig

    class Judge(BaseRagasLLM):
        def generate_text(self, *_: object, **__: object) -> LLMResult:
            return LLMResult(generations=[[Generation(text=copied(found))]])

        async def agenerate_text(self, *_: object, **__: object) -> LLMResult:
            return self.generate_text()

    sample = sample_of(found)
    row = {"question": sample["user_input"], "contexts": sample["retrieved_contexts"]}
    return float(ContextRelevancy(llm=Judge(RunConfig())).score(row))


def main() -> None:
    """Compare and print."""
    from ragstone_compat.ragas.metrics import ContextRelevancy

    release = version("ragas")
    old = release.startswith("0.1.")
    failed, differ = False, list[str]()
    print(f"| ragas {release} | equal, of {SAMPLES} |\n|---|--:|")
    for name, expected in {"ContextRelevancy": 30}.items() if old else EQUAL.items():
        equal = 0
        for seed in range(SAMPLES):
            found = facts(seed)
            with redirect_stderr(StringIO()):
                if old:
                    own = ContextRelevancy(llm=ours(found)).score(sample_of(found)).value
                    peer = old_context_relevancy(found)
                else:
                    own = score("ragstone_compat.ragas", name, found, ours(found), FakeEmbedder())
                    peer = score("ragas", name, found, theirs(found), their_embedder())
            # ragas rounds this one to two digits
            same = abs(own - peer) < (0.005 + 1e-9 if name == "FactualCorrectness" else 1e-6)
            equal += same
            if not same:
                differ.append(f"{name}, sample {seed}: here {own}, there {peer}; {dict(found)}")
        failed = failed or equal != expected
        print(f"| `{name}` | {equal} |")
    print("\n".join(["", *differ]))
    sys.exit(failed)


if __name__ == "__main__":
    main()
