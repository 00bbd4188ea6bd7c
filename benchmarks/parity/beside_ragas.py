"""ragas' metrics beside `ragstone_compat.ragas`: the same 30 samples, the same answers of the judge.

    python benchmarks/parity/beside_ragas.py

It needs ragas and ragstone in one environment and asks no model: ragas 0.4.3 with langchain-community 0.4.1, ragas
0.2.15 (eight metrics in each), or ragas 0.1.10 (ContextRelevancy, which later releases do not have). It prints a table
and, below it, what differs. It fails where a number of equal scores is not the one that docs/coming-from-ragas.md says.
"""

import asyncio
import json
import os
import random
import re
import sys
from collections.abc import Callable, Mapping, Sequence
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
"""How many of the scores of ragas 0.4.3 and 0.2.15 are equal."""
IN_0_2 = {
    "AnswerRelevancy": "ResponseRelevancy",
    "ContextPrecision": "LLMContextPrecisionWithReference",
    "ContextRecall": "LLMContextRecall",
    "SummaryScore": "SummarizationScore",
}
"""What ragas 0.2.15 calls them, where it is another name."""
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
        "needed": draw.randint(0, 6),
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
            "sentences": lambda: {"ids": list(range(1, min(found["needed"], 2 * len(found["contexts"])) + 1))},
            "questions": lambda: (
                {"items": [{"keyphrase": text, "question": text} for text in items("answers")]}
                if metric == "summarization_score"
                else {"questions": [{"question": f"Question {i}?", **question} for i in range(3)]}
            ),
        }[step]()

    return FakeLLM(reply)


def copied(found: Facts) -> str:
    """Return what the judge of ragas 0.1.10 copies of the contexts."""
    sentences = ["Context 0 says this.", "It says that."] * 3
    return " ".join(sentences[: found["needed"]]) or "Insufficient Information."


def answer(form: str, text: str, found: Facts, asked: int) -> Mapping[str, Any]:
    """Return what ragas' judge answers in a form of ragas', to a text, as the so many-th question."""
    name = "response" if "RESPONSE" in text else "reference"
    claims = [f"{name} {i}" for i in range(len(found[name]))]
    checked = found["reference" if "reference 0" in text else "response"]
    right = sum(found["response"])
    wrong, absent = len(found["response"]) - right, found["reference"].count(False)
    verdict = {"statement": "", "reason": ""}
    relevance = {"question": f"Question {asked % 3}?", "noncommittal": int(found["evades"])}
    recalled = {"classifications": [{**verdict, "attributed": int(each)} for each in found["reference"]]}
    forms: dict[str, Mapping[str, Any]] = {
        "StatementGeneratorOutput": {"statements": claims},
        "ClaimDecompositionOutput": {"claims": claims},
        "NLIStatementOutput": {"statements": [{**verdict, "verdict": int(each)} for each in checked]},
        "ClassificationWithReason": {"TP": [verdict] * right, "FP": [verdict] * wrong, "FN": [verdict] * absent},
        **dict.fromkeys(("AnswerRelevanceOutput", "ResponseRelevanceOutput"), relevance),
        **dict.fromkeys(("ContextRecallOutput", "ContextRecallClassifications"), recalled),
        "ExtractedKeyphrases": {"keyphrases": ["a phrase"]},
        "QuestionsGenerated": {"questions": ["Is it?"] * len(found["answers"])},
        "AnswersGenerated": {"answers": [str(int(each)) for each in found["answers"]]},
    }
    if form in ("ContextPrecisionOutput", "Verification"):
        return {"reason": "", "verdict": int(found["contexts"][asked])}
    return forms[form]


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
            text = prompt[prompt.rfind("nput:") :]
            return response_model(**answer(response_model.__name__, text, found, self.asked - 1))

    return Judge()


def writes(text_of: Callable[[str, int], str]) -> Any:  # noqa: ANN401 - of a class of ragas'
    """Return a judge of ragas 0.1 and 0.2, which writes the text for a prompt and its number."""
    from langchain_core.outputs import Generation, LLMResult
    from ragas.llms import BaseRagasLLM
    from ragas.run_config import RunConfig

    class Judge(BaseRagasLLM):
        asked = 0

        def generate_text(self, prompt: Any, n: int = 1, *_: object, **__: object) -> LLMResult:  # noqa: ANN401
            self.asked += n
            numbers = range(self.asked - n, self.asked)
            return LLMResult(generations=[[Generation(text=text_of(prompt.to_string(), i)) for i in numbers]])

        async def agenerate_text(self, prompt: Any, n: int = 1, *_: object, **__: object) -> LLMResult:  # noqa: ANN401
            return self.generate_text(prompt, n)

        def is_finished(self, response: LLMResult) -> bool:
            del response
            return True

    return Judge(RunConfig())


def their_embedder() -> Any:  # noqa: ANN401 - of a class of ragas'
    """Return the embedder of ragas 0.4.3, with the vectors of ragstone's."""
    from ragas.embeddings.base import BaseRagasEmbedding

    class Embedder(BaseRagasEmbedding):
        def embed_text(self, text: str, **_: object) -> list[float]:
            return [float(x) for x in FakeEmbedder().embed([text])[0]]

        async def aembed_text(self, text: str, **_: object) -> list[float]:
            return self.embed_text(text)

    return Embedder()


def needs_embedder(name: str) -> bool:
    return name in ("AnswerRelevancy", "AnswerCorrectness", "SemanticSimilarity")


def score(library: str, name: str, found: Facts, judge: object, embedder: object) -> float:
    """Return the score of a sample by a metric of ragas 0.4.3, or of the same name here."""
    kind = getattr(import_module(f"{library}.metrics.collections"), name)
    models = {} if name == "SemanticSimilarity" else {"llm": judge}
    if needs_embedder(name):
        models["embeddings"] = embedder
    sample = sample_of(found)
    result = asyncio.run(kind(**models).ascore(**{field: sample[field] for field in FIELDS[name]}))
    return float(result.value)


def score_0_2(library: str, name: str, found: Facts, judge: object, embedder: object) -> float:
    """Return the score of a sample by a metric of ragas 0.2.15, or of the same name here."""
    package = import_module(library)
    kind = getattr(import_module(f"{library}.metrics"), IN_0_2.get(name, name))
    models = {"embeddings": embedder} if needs_embedder(name) else {}
    metric = kind(**models) if name == "SemanticSimilarity" else kind(llm=judge, **models)
    if name == "AnswerCorrectness" and library == "ragas":
        metric.answer_similarity = import_module("ragas.metrics").SemanticSimilarity(embeddings=embedder)
    sample = sample_of(found)
    turn = package.SingleTurnSample(**{field: sample[field] for field in FIELDS[name]})
    return float(asyncio.run(metric.single_turn_ascore(turn)))


def embedder_0_2() -> Any:  # noqa: ANN401 - of a class of ragas'
    """Return the embedder of ragas 0.2.15, with the vectors of ragstone's."""
    from ragas.embeddings import BaseRagasEmbeddings
    from ragas.run_config import RunConfig

    class Embedder(BaseRagasEmbeddings):
        def embed_query(self, text: str) -> list[float]:
            return [float(x) for x in FakeEmbedder().embed([text])[0]]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        async def aembed_query(self, text: str) -> list[float]:
            return self.embed_query(text)

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            return self.embed_documents(texts)

    embedder = Embedder()
    embedder.set_run_config(RunConfig())
    return embedder


def text_0_2(found: Facts) -> Callable[[str, int], str]:
    """Return what the judge of ragas 0.2.15 writes; the prompt ends its schema with the form's name."""

    def text_of(prompt: str, asked: int) -> str:
        form = re.findall(r'"title": "(\w+)", "type": "object"}', prompt)[-1]
        return json.dumps(answer(form, prompt[prompt.rfind("nput:") :], found, asked))

    return text_of


def both(release: str, name: str, found: Facts) -> tuple[float, float]:
    """Return the score of a sample by a metric here and in ragas."""
    if release.startswith("0.1."):
        from ragas.metrics import ContextRelevancy as Theirs

        from ragstone_compat.ragas.metrics import ContextRelevancy

        sample = sample_of(found)
        own = ContextRelevancy(llm=ours(found)).score(sample).value
        row = {"question": sample["user_input"], "contexts": sample["retrieved_contexts"]}
        return own, float(Theirs(llm=writes(lambda *_: copied(found))).score(row))
    if release.startswith("0.2."):
        own = score_0_2("ragstone_compat.ragas", name, found, ours(found), FakeEmbedder())
        return own, score_0_2("ragas", name, found, writes(text_0_2(found)), embedder_0_2())
    own = score("ragstone_compat.ragas", name, found, ours(found), FakeEmbedder())
    return own, score("ragas", name, found, theirs(found), their_embedder())


def main() -> None:
    """Compare and print."""
    release = version("ragas")
    failed, differ = False, list[str]()
    print(f"| ragas {release} | equal, of {SAMPLES} |\n|---|--:|")
    for name, expected in {"ContextRelevancy": 30}.items() if release.startswith("0.1.") else EQUAL.items():
        equal = 0
        for seed in range(SAMPLES):
            found = facts(seed)
            with redirect_stderr(StringIO()):
                own, peer = both(release, name, found)
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
