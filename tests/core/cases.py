"""One table of cases a metric: a sample, what the judge says, and all that comes out. `test_metrics.py` asserts the rows.

Verdicts are in short: s(upported), x for contradicted, m(issing), u(nsupported), y(es), n(o), c(annot tell). What stands
behind a "-" lowers the score. A judge that is asked together says these words; else `gives` has them, or the
probability of the first choice, by the text of an item.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragstone.metrics.fitted import ANSWERED, SUPPORTED

from ..support.judges import mapped  # noqa: TID252

WORDS = {"s": "supported", "x": "contradicted", "m": "not_in_source", "u": "unsupported", "y": "yes", "n": "no",
         "c": "cannot_tell", "+": "relevant", "0": "irrelevant"}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One row: what goes in, and what comes out."""

    value: float | None  # None: undefined
    verdicts: str | None = None
    breakdown: Mapping[str, float] | None = None
    calls: int = 1
    said: str = ""  # in the reason, or in the detail of what is undefined
    gives: Mapping[str, Any] | None = None  # by step; a decision model's answers by item are under "decide"
    way: str = "together"  # or "one_by_one", "graded" (with probabilities), "decisions"
    sample: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    angles: Sequence[float] | None = None  # in degrees, of the texts behind the first
    sees: Sequence[str] | None = None  # the texts of each request by name
    evidence: Sequence[str] | None = None
    probabilities: Sequence[float] | None = None

    @property
    def listed(self) -> dict[str, list[str]]:
        """The words of the verdicts by kind, with a "-" where one lowers the score."""
        kinds = [kind.split(": ") for kind in (self.verdicts or "").split(", ") if kind]
        return {
            kind: ["-" * (word[0] == "-") + WORDS.get(word.strip("-"), word.strip("-")) for word in words.split()]
            for kind, words in kinds
        }


ITEMS = [f"Item {i}." for i in range(9)]
FIELDS = {"user_input": "Bob sat. It snowed.", "retrieved_contexts": ["Bob sat.", "It snowed."],
          "response": "Ann ran. It rained.", "reference": "Bob sat. It snowed."}  # fmt: skip
NO_SENTENCE = {"splitter": lambda text, language: []}
P = {"Alpha is so.": 0.9, "Beta is so.": 0.2, "Gamma is so.": 0.2, "Delta is so.": 0.2}
TWO = {"response": "Alpha is so. Beta is so."}
THREE = {"reference": "Alpha is so. Gamma is so. Delta is so. Alpha is so."}  # what is repeated is one claim
YES, NO = mapped(SUPPORTED, 0.9), mapped(SUPPORTED, 0.2)
BOTH, RECALL = (YES + NO) / 2, (YES + 2 * NO) / 3
F1 = 2 * BOTH * RECALL / (BOTH + RECALL)
DECIDED = {"Ann ran.": 0.9, "It rained.": 0.3, "Bob sat.": 0.9, "It snowed.": 0.3}
ASKED = {"Alpha?": 0.9, "Beta?": 0.2}
PARTS = (mapped(ANSWERED, 0.9) + mapped(ANSWERED, 0.2)) / 2


def shares(count: float, expected: float, **more: float) -> dict[str, float]:
    """A breakdown with probabilities."""
    return {"count": count, "expected": expected, **more}


def decided(value: float, verdicts: str, answers: Mapping[str, float], calls: int = 1, **more: Any) -> Case:
    """The row of a decision model, which answers by item, and of its writer."""
    return Case(
        value, verdicts, calls=calls, way="decisions", gives={"decide": answers, **more.pop("writes", {})}, **more
    )


# fmt: off
FAITHFULNESS = [
    Case(1, "claim: s", {"supported": 1, "claims": 1}, 2, evidence=["retrieved_contexts[0]: Bob sat."]),
    Case(1 / 3, "claim: s -x -m", {"supported": 1, "claims": 3}, 2, "1 of 3 claims supported",
         sees=["response", "context claims"]),
    Case(0, "claim: -m -m", {"supported": 0, "claims": 2}, 2),
    Case(None, "claim: ", said="response"),
    Case(None, calls=0, said="response", way="one_by_one", options=NO_SENTENCE, gives={}),
    Case(0.5, "claim: s -u", {"supported": 1, "claims": 2}, 2, way="one_by_one", gives={"verdict": {"It is.": "yes", "It was.": "no"}},
         sample={"response": "It is.  It was. \nIt is."}, sees=["text claim"] * 2,
         evidence=["response: It is.", "response: It was."]),
    Case(BOTH, "claim: s -u", shares(0.5, BOTH, supported=1, claims=2, least=NO), 2, way="graded", sample=TWO,
         gives={"verdict": P}, probabilities=[YES, NO]),
    decided(0.6, "claim: s -u", DECIDED, probabilities=[0.9, 0.3]),  # no map was fitted on it
]
CONTEXT_RECALL = [
    Case(2 / 3, "claim: s -m s", {"supported": 2, "claims": 3}, 2, "2 of 3 claims of the reference",
         sees=["reference", "context claims"], evidence=["retrieved_contexts[0]: Bob sat."] * 3),
    Case(None, "claim: ", said="reference"),
    Case(RECALL, "claim: s -u -u", shares(1 / 3, RECALL, supported=1, claims=3, least=NO), 3, way="graded",
         sample=THREE, gives={"verdict": P}),
    decided(0.6, "claim: s -u", DECIDED),
]
FACTUAL_CORRECTNESS = [
    Case(1, "response_claim: s, reference_claim: s", {"precision": 1, "recall": 1}, 2,
         sees=["response reference", "response reference response_claims reference_claims"],
         evidence=["reference: Bob sat.", "response: Ann ran."]),
    Case(0, "response_claim: -x, reference_claim: -m -m", {"precision": 0, "recall": 0}, 2),
    Case(2 / 3, "response_claim: s -m -x s, reference_claim: s", {"precision": 0.5, "recall": 1}, 2),
    Case(1 / 3, "response_claim: s -x, reference_claim: s -m -m -m", {"precision": 0.5, "recall": 0.25}, 2,
         "1 of 4 claims of the reference"),
    Case(None, "response_claim: , reference_claim: s", said="response"),
    Case(None, "response_claim: s, reference_claim: ", said="reference"),
    Case(F1, "response_claim: s -u, reference_claim: s -u -u",
         shares(0.4, F1, precision=0.5, recall=1 / 3, precision_expected=BOTH, recall_expected=RECALL), 5,
         way="graded", sample=TWO | THREE, gives={"verdict": P}),
    decided(0.6, "response_claim: s -u, reference_claim: s -u", DECIDED, 2),
]


def citing(response: str, says: Any, value: float, verdicts: str, recall: float, precision: float, **more: Any) -> Case:
    """Sentences with marks, and whether what they cite supports them: all of it, each alone, all but each."""
    contexts = [f"Context {i}." for i in range(1, 6)]
    counts = {kind: len(words.split()) for kind, words in (each.split(": ") for each in verdicts.split(", "))}
    known = {"recall": recall, "precision": precision, "sentences": counts["sentence"], "citations": counts["citation"]}
    return Case(value, verdicts, known, sample={"retrieved_contexts": contexts, "response": response}, gives=says, **more)


ALONE = dict.fromkeys(["Context 1.", "Context 3.", "Context 1.\nContext 3."], "yes")
CITATION_SUPPORT = [
    citing("Ann [2]. Bob.", {"supported": "yes"}, 2 / 3, "sentence: s -u, citation: needed", 0.5, 1,
           sees=["contexts claims"], evidence=["response: Ann [2]."] * 2 + ["retrieved_contexts[1]: Context 2.", "response: Bob."]),
    citing("Ann [2][4].", {"supported": "yes yes no"}, 2 / 3, "sentence: s, citation: needed -needless", 1, 0.5),
    citing("Ann [2][4].", {"supported": "yes no no"}, 1, "sentence: s, citation: needed needed", 1, 1),
    citing("Ann [1].", {"supported": "no"}, 0, "sentence: -u, citation: -needless", 0, 0),
    citing("Ann [9].", {}, 0, "sentence: -u, citation: -needless", 0, 0, calls=0),  # no such context
    citing("Ann [1][9].", {"supported": "yes"}, 2 / 3, "sentence: s, citation: needed -needless", 1, 0.5),
    Case(None, calls=0, said="cites no context", gives={}),
    citing("Ann [1][3].", {"verdict": ALONE}, 1, "sentence: s, citation: needed needed", 1, 1, calls=3, way="one_by_one",
           sees=["text claim"] * 3),
    citing("Ann [1].", {"decide": {"Ann. (cites 1)": 0.9}}, 1, "sentence: s, citation: needed", 1, 1, way="decisions"),
]
RESPONSE_COMPLETENESS = [
    Case(1, "part: y", {"answered": 1, "parts": 1}, 2, sees=["question", "response questions"]),
    Case(1 / 3, "part: y -n -n", {"answered": 1, "parts": 3}, 2, "answers 1 of 3 parts"),
    Case(1, "part: y y y y y y y y y", {"answered": 9, "parts": 9}, 2),  # the bound is a stop for small judges
    Case(0, "part: -n", {"answered": 0, "parts": 1}, 2, gives={"parts": ["Who?", "Who? "], "answered": "no"}),
    Case(PARTS, "part: y -n", shares(0.5, PARTS, answered=1, parts=2), 3, way="graded",
         gives={"parts": [*ASKED], "part": ASKED}),
    decided(0.55, "part: y -n", ASKED, 2, writes={"parts": [*ASKED]}),
]


def sized(size: int, value: float, verdicts: str, **options: Any) -> Case:
    """A summary of so many characters, of a source of 100, with its line break."""
    sample = {"retrieved_contexts": ["a" * 49, "b" * 50], "response": "s" * size}
    yes, asked = verdicts.count("y"), len(verdicts.split())
    return Case(value, f"question: {verdicts}", {"qa": yes / asked, "conciseness": 1 - min(size, 100) / 100}, 2,
                f"{yes} of {asked} questions", sample=sample, options=options, sees=["text", "summary questions"])


SOURCE = {"retrieved_contexts": ["One is so.", "Two is so. One is so."], "response": "One is so."}
SUMMARIZATION_SCORE = [
    sized(50, 0.375, "y -n -n -n"),
    sized(100, 0.5, "y y y y"),
    sized(300, 0.5, "y y y y"),  # longer than its source is as long as its source
    sized(1, 0.495, "-n"),
    sized(80, 0.41, "y -n", coeff=0.3),
    sized(80, 0.5, "y -n", coeff=0.0),
    sized(80, 0.2, "y -n", coeff=1.0),
    sized(80, 0.25, "y -n -n -n", coeff=0.3, length_penalty=False),
    Case(None, "question: ", said="qa: "),
    Case(1, "question: y", gives={"answers": "yes"}, options={"questions": ["Is it?"], "length_penalty": False},
         sees=["summary questions"]),
    Case(0.55, "question: y -n", shares(0.5, 0.55, qa=0.5, qa_expected=0.55, conciseness=0), 2, way="graded",
         options={"questions": [*ASKED], "length_penalty": False}, gives={"answer": ASKED}),
    Case(0.5, "sentence: y -n", {"qa": 0.5, "conciseness": 1 - 10 / 32}, 2, "says 1 of 2 sentences of the source",
         way="one_by_one", options={"length_penalty": False}, sample=SOURCE,
         gives={"says": {"One is so.": "yes", "Two is so.": "no"}},
         evidence=["retrieved_contexts[0]: One is so.", "retrieved_contexts[1]: Two is so."]),
    decided(0.55, "question: y -n", ASKED, 2, writes={"questions": [*ASKED]}, options={"length_penalty": False}),
]


def covering(value: float | None, claims: str, source: str, summary: str, alignment: float = 0,
             coverage: float | None = None, rule: str = "both_yes", calls: int = 5, said: str = "", **more: Any) -> Case:
    """Claims, and the answers to questions on the original and on the summary."""
    known = {"alignment": alignment} | ({} if coverage is None else {"coverage": coverage}) | more.pop("known", {})
    options = {"n_questions": len(source.split()), "coverage_rule": rule} | more.pop("options", {})
    verdicts = f"claim: {claims}, source_answer: {source}, summary_answer: {summary}"
    return Case(value, verdicts, known, calls, said, options=options, **more)


def doubted(value: float | None, answers: str, asked: Mapping[str, float], known: Mapping[str, float], **options: Any) -> Case:
    """The same asked one by one, with probabilities."""
    given = {"verdict": P, "source_answer": asked, "summary_answer": asked}
    return covering(value, "s -u", answers, answers, 0.5, calls=6, way="graded", sample=TWO, gives=given,
                    options={"assessment_questions": [*asked], **options},
                    known={"alignment_expected": BOTH, "alignment_least": NO, **known})


BELOW = {"Beta?": 0.2, "Gamma?": 0.2}  # questions that the original rather denies have an expectation, and no count
ALIGNMENT_COVERAGE = [
    covering(1, "s", "y y y", "y y y", 1, 1, evidence=["user_input: Bob sat."]),
    covering(0.5, "s -x", "y n c", "y y c", 0.5, 1),
    covering(1 / 3, "s", "y y y", "y -n -c", 1, 1 / 3),
    covering(0, "-m", "y n c", "y -y c", 0, 2 / 3, "agreement"),
    covering(0, "-x -m", "n c", "n c", 0, said="none of the 2 questions"),
    covering(1 / 3, "s", "n n c", "-y n -y", 1, 1 / 3, "agreement"),
    covering(None, "", "y", "y", calls=2, said="alignment: "),
    covering(None, "s", "n c", "y y", said="coverage: "),
    doubted(BOTH, "y c", ASKED, shares(0.5, BOTH, coverage=1, coverage_expected=0.85 / 1.1)),
    doubted(0.5875, "y c", ASKED, shares(0.5, 0.5875, coverage=1, coverage_expected=0.5875), coverage_rule="agreement"),
    doubted(0.2, "c c", BELOW, {"coverage_expected": 0.2, "expected": 0.2}),
    doubted(None, "c c", BELOW, {}, scoring="count"),
    decided(0.6, "claim: s -u, source_answer: y c, summary_answer: y c", DECIDED | ASKED, 3,
            writes={"questions": [*ASKED]}, options={"n_questions": 2}),
]
SIX = ["  One is here. Two is here.\n", "Three is here.", "Four is here. Five is here. Six is here."]
HERE = {"One": 0.9, "Two": 0.2, "Three": 0.6, "Four": 0.1, "Five": 0.3, "Six": 0.4}
PARTLY = {"sentence": 2 / 6, "chunk": 2 / 3, "sentence_expected": 2.5 / 6, "chunk_expected": 1.9 / 3}


def needed(words: str, ids: list[int], sentence: float, chunk: float, by: str = "sentence") -> Case:
    """Sentences that are asked about together."""
    known = {"sentence": sentence, "chunk": chunk}
    return Case(known[by], f"sentence: {words}", known, gives={"sentences": ids}, options={"granularity": by},
                sample={"retrieved_contexts": SIX}, sees=["question sentences"])


def probable(by: str, scoring: str, value: float) -> Case:
    """Sentences of different probabilities, in passages that say nothing."""
    return Case(value, None, PARTLY | {"count": PARTLY[by], "expected": PARTLY[f"{by}_expected"]}, 9, way="graded",
                sample={"retrieved_contexts": SIX}, options={"granularity": by, "scoring": scoring},
                gives={"passage": 0.5, "sentence": {f"{word} is here.": p for word, p in HERE.items()}},
                probabilities=[*HERE.values(), 0.5, 0.5, 0.5])


def weighed(of_passages: Sequence[float], against_best: Sequence[float]) -> Case:
    """Sentences of .6 each, in passages of these probabilities, which count as those against the best."""
    found = [1.5 * against_best[i] / (1 + 0.5 * against_best[i]) for i in (0, 0, 1, 2, 2, 2)]
    return Case(sum(p > 0.5 + 1e-9 for p in found) / 6, calls=9, way="graded", probabilities=[*found, *of_passages],
                gives={"sentence": 0.6, "passage": dict(zip(SIX, of_passages, strict=True))},
                sample={"retrieved_contexts": SIX})


def of_one(of_sentence: float, of_passage: float, p: float) -> Case:
    """A sentence in its passage: the odds of the two are multiplied."""
    return Case(float(p > 0.5 + 1e-9), calls=2, way="graded", sample={"retrieved_contexts": ["One."]},
                gives={"sentence": of_sentence, "passage": of_passage}, probabilities=[p, of_passage])


def both_say(passage: str, value: float) -> Case:
    """Without probabilities, sentence and passage must both be a yes."""
    return Case(value, calls=4, way="one_by_one", sample={"retrieved_contexts": ["One. Two. Three."]},
                gives={"passage": passage, "sentence": {"One.": "yes", "Two.": "no", "Three.": "yes"}})


CONTEXT_RELEVANCY = [
    needed("-0 -0 -0 -0 -0 -0", [], 0, 0), needed("+ + -0 -0 -0 -0", [1, 2], 1 / 3, 1 / 3),
    needed("+ -0 + + -0 -0", [1, 3, 4], 1 / 2, 1), needed("+ + + + + +", [1, 2, 3, 4, 5, 6], 1, 1),
    needed("-0 -0 -0 -0 -0 -0", [], 0, 0, "chunk"), needed("+ + -0 -0 -0 -0", [1, 2], 1 / 3, 1 / 3, "chunk"),
    needed("+ 0 + + 0 0", [1, 3, 4], 1 / 2, 1, "chunk"),
    Case(None, calls=0, said="retrieved_contexts: ", options=NO_SENTENCE, gives={}),
    both_say("yes", 2 / 3), both_say("no", 0),
    probable("sentence", "count", 2 / 6), probable("chunk", "count", 2 / 3),
    probable("sentence", "expected", 2.5 / 6), probable("chunk", "expected", 1.9 / 3),
    of_one(0.6, 0.5, 0.6), of_one(0.6, 0.6, 0.36 / 0.52), of_one(0.6, 0.4, 0.5), of_one(0.9, 0.2, 0.18 / 0.26),
    of_one(1.0, 0.0, 0.5), of_one(0.0, 0.9, 0),
    weighed((0.4, 0.25, 0.1), (0.5, 1 / 3, 1 / 7)),  # an answer in two of them: neither holds it alone
    weighed((0.5, 0.4, 0.1), (0.5, 0.4, 0.1)),  # one may hold it alone
    weighed((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), weighed((0.4, 0.0, 0.2), (0.5, 0.0, 3 / 11)),
    decided(0.5, "sentence: + -0", DECIDED, probabilities=[0.9, 0.3]),
]


def ranked(value: float, words: str, useful: int, first: int | None) -> Case:
    """Contexts in their order: the mean over the useful ranks of the share of useful ones up to there."""
    texts = [f"Text {i}." for i, _ in enumerate(words.split())]
    known = {"useful": useful, "contexts": len(texts)} | ({} if first is None else {"first_useful": first})
    return Case(value, f"context: {words}", known, sample={"retrieved_contexts": texts}, sees=["question answer contexts"])


RISING = {"Bob sat.": 0.2, "It snowed.": 0.9}
CONTEXT_PRECISION = [
    ranked(1, "useful", 1, 1),
    ranked(0, "-useless -useless", 0, None),
    ranked((1 + 2 / 3) / 2, "useful -useless useful", 2, 1),
    ranked((1 / 2 + 2 / 3) / 2, "-useless useful useful useless", 2, 2),
    ranked((1 / 3 + 2 / 5) / 2, "-useless -useless useful -useless useful", 2, 3),
    # Equal contexts count at their own ranks, and a blank one is not asked about.
    Case(0.75, "context: useful -useless -useless useful", sample={"retrieved_contexts": ["A.", " \u200b", "B.", "A."]},
         gives={"useful": "yes no yes"}, evidence=[f"retrieved_contexts[{i}]: {text}" for i, text in
                                                  enumerate(["A.", " \u200b", "B.", "A."])]),
    *(Case(value, "context: -useless useful", shares(0.5, 0.56, useful=1, contexts=2, first_useful=2), 2, way="graded",
           gives={"context": RISING}, options={"scoring": scoring}, sees=["question answer context"] * 2)
      for scoring, value in (("auto", 0.5), ("expected", 0.56))),
    decided(1, "context: useful useless", DECIDED),
]


def similar(angles: Sequence[float], verdicts: str, rule: str, value: float) -> Case:
    """Questions at these angles to the one asked, flagged noncommittal or not."""
    asked = [{"question": f"q{i}", "noncommittal": "no_" in word} for i, word in enumerate(verdicts.split())]
    return Case(value, f"question: {verdicts}", angles=angles, sees=["response"], gives={"questions": {"questions": asked}},
                options={"strictness": len(angles), "noncommittal": rule})


def evading(p: float, rule: str, scoring: str, value: float) -> Case:
    """One question at 120 degrees, of a judge that holds the response for a refusal, or for none, with certainty."""
    refuses, off = float(p > 0.5), rule == "off"
    known = {"cosine_1": -0.5, "noncommittal": refuses, "open": p}
    return Case(value, None, known | shares(-0.5 * (off or 1 - refuses), -0.5 * (off or 1 - refuses)), 2, way="graded",
                gives={"questions": ["q"], "open": 1 - p}, angles=[120], probabilities=[1 - refuses],
                options={"strictness": 1, "noncommittal": rule, "scoring": scoring})


def answering(size: int, word: str, verdict: str) -> Case:
    """A response of 60 tokens, or of more, which is asked of in other words; without probabilities the word decides."""
    step, sees = ("open", "question response") if size <= 240 else ("refused", "response question")
    return Case(0 if "no_" in verdict else 0.5, f"question: {verdict}", calls=2, way="one_by_one", angles=[60],
                gives={"questions": ["q"], step: word}, sample={"response": "x" * size}, options={"strictness": 1},
                sees=["response", sees])


NON = "no_answer"
RESPONSE_RELEVANCY = [
    similar([60, 60, 60], "answer answer answer", "all", 0.5),
    similar([180, 180], "answer answer", "any", -1.0),
    similar([0, 60, 90], f"-{NON} -{NON} -{NON}", "all", 0.0),
    similar([0, 60, 90], f"-{NON} answer answer", "any", 0.0),
    similar([0, 60, 90], f"{NON} answer answer", "majority", 0.5),
    similar([60, 60], f"{NON} answer", "majority", 0.5),  # half is no majority
    similar([120], NON, "off", -0.5),
    similar([180], f"-{NON}", "all", 0.0),
    evading(0.0001, "all", "count", -0.5), evading(0.0001, "any", "expected", -0.5),
    evading(0.9999, "majority", "count", 0), evading(0.9999, "all", "expected", 0),
    evading(0.9999, "off", "count", -0.5), evading(0.9999, "off", "expected", -0.5),
    answering(240, "yes", "answer"), answering(240, "no", f"-{NON}"),
    answering(241, "answered", "answer"), answering(241, "refused", f"-{NON}"),
    decided(0.375, "question: answer", {"": 0.75}, 2, writes={"questions": ["q"]}, angles=[60], options={"strictness": 1}),
    decided(0, f"question: -{NON}", {"": 0.0}, 2, writes={"questions": ["q"]}, angles=[120], options={"strictness": 1}),
]


def chosen(choices: object, verdict: str, value: float) -> Case:
    """A word that the judge picks, and shows twice with the second sentence."""
    return Case(value, f"criterion: {verdict}", {}, gives={"verdict": {"evidence": [2, 2], "verdict": verdict.strip("-")}},
                options={"choices": choices}, sees=["question response"], evidence=["user_input: It snowed."])


GRADES = ("good", "fair", "poor")
CRITERION = [
    chosen(("yes", "no"), "yes", 1), chosen(("yes", "no"), "-no", 0), chosen(GRADES, "-fair", 0.5),
    chosen(("v", "w", "k", "d", "e"), "-d", 0.25), chosen({"good": 1, "poor": 0}, "good", 1),
    chosen({"poor": 0.1, "good": 0.6, "fine": 0.6}, "fine", 0.6),
    Case(1, "criterion: y", {}, way="one_by_one", options={"sees": ("retrieved_contexts",)}, gives={"verdict": "yes"},
         sees=["contexts"]),
    Case(0.55, "criterion: -fair", shares(0.5, 0.55), way="graded", options={"choices": GRADES}, probabilities=[0.2],
         gives={"verdict": {"good": 0.2, "fair": 0.7, "poor": 0.1}}),
    decided(0, "criterion: -n", {"": 0.5}, options={"scoring": "count"}),
]
CASES = {
    "faithfulness": FAITHFULNESS, "context_recall": CONTEXT_RECALL, "factual_correctness": FACTUAL_CORRECTNESS,
    "citation_support": CITATION_SUPPORT, "response_completeness": RESPONSE_COMPLETENESS,
    "summarization_score": SUMMARIZATION_SCORE, "alignment_coverage": ALIGNMENT_COVERAGE,
    "context_relevancy": CONTEXT_RELEVANCY, "context_precision": CONTEXT_PRECISION,
    "response_relevancy": RESPONSE_RELEVANCY, "graded": CRITERION,
}
