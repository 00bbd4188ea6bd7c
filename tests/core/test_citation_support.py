"""CitationSupport against ALCE's definitions, and what counts as a citation of which sentence."""

import itertools
import re

import pytest

from ragstone import CitationSupport, Sample
from ragstone.testing import FakeLLM

from .judges import fenced

ITEM = re.compile(r"\[\d+\] (.*) \(cites ([\d, ]+)\)")


def supporting(truth):
    """A judge who knows which contexts support which claim; any more of them support it too."""

    def reply(request):
        items = [ITEM.fullmatch(line) for line in fenced(request)[0]["claims"].splitlines()]
        groups = [(item[1], {int(n) for n in item[2].split(",")}) for item in items]
        return {"answers": {str(i): word(claim, group) for i, (claim, group) in enumerate(groups, 1)}}

    def word(claim, group):
        return "yes" if any(enough <= group for enough in truth.get(claim, ())) else "no"

    return FakeLLM(reply)


def score(response, truth=(), contexts=4, **options):
    llm = supporting(dict(truth))
    texts = [f"Context {i}." for i in range(1, contexts + 1)]
    return CitationSupport(llm=llm, **options).score(Sample(retrieved_contexts=texts, response=response)), llm


def alce(sentences, truth):
    """Recall and precision as section 3 defines them, by (claim, citations)."""

    def supports(claim, group):
        return any(enough <= set(group) for enough in truth.get(claim, ()))

    recalls, precise = [], []
    for claim, cites in sentences:
        recalls.append(bool(cites) and supports(claim, cites))
        for one in cites:
            rest = [other for other in cites if other != one]
            irrelevant = not supports(claim, [one]) and supports(claim, rest)
            precise.append(recalls[-1] and not irrelevant)
    return sum(recalls) / len(recalls), sum(precise) / len(precise)


GROUPS = [[], [1], [1, 2], [2, 3, 4]]
TRUTHS = [[], [{1}], [{1, 2}], [{2}, {3}]]


@pytest.mark.parametrize(("first", "second"), [*itertools.product(range(4), repeat=2)])
@pytest.mark.parametrize(("of_first", "of_second"), [(1, 2), (2, 1), (3, 3), (0, 2)])
def test_it_is_f1_of_recall_and_precision_as_alce_defines_them(first, second, of_first, of_second):
    sentences = [("Ann ran.", GROUPS[first]), ("Bob sat.", GROUPS[second])]
    truth = {"Ann ran.": TRUTHS[of_first], "Bob sat.": TRUTHS[of_second]}
    response = " ".join(f"{text[:-1]}{''.join(f' [{n}]' for n in cites)}." for text, cites in sentences)
    outcome, llm = score(response, truth)
    if not GROUPS[first] and not GROUPS[second]:
        assert (outcome.reason, llm.requests) == ("undefined", [])
        return
    recall, precision = alce(sentences, truth)
    assert (outcome.breakdown["recall"], outcome.breakdown["precision"]) == (recall, precision)
    assert outcome.value == pytest.approx(2 * recall * precision / (recall + precision) if recall + precision else 0)
    assert outcome.usage.llm_calls == 1
    assert CitationSupport.value_of(outcome.verdicts, Sample(), {}) == outcome.value


@pytest.mark.parametrize(
    ("response", "cited"),
    [
        ("Ann ran [2].", [[2]]),
        ("Ann ran. [2] Bob sat.", [[2], []]),
        ("Ann ran.[2] Bob sat.[3]", [[2], [3]]),
        ("Ann ran [1, 3]. Bob sat [1][2].", [[1, 3], [1, 2]]),
        ("Ann ran (Source 2). Bob sat (sources 1 and 3).", [[2], [1, 3]]),
        ("Ann ran [Source 2; Source 4].", [[2, 4]]),
        ("Ann ran [^2].", [[2]]),
        ("[1] Ann ran. Bob sat.", [[1], []]),
        ("Ann ran.\n[1] Bob sat.", [[], [1]]),
        ("Ann ran [2] and [2].", [[2]]),
        ("Ann ran in [2015]. Bob sat [1].", [[], [1]]),
        ("Ann ran.\n\n[1]", [[1]]),
    ],
)
def test_which_sentence_cites_what(response, cited):
    outcome, _ = score(response)
    found = [v for v in outcome.verdicts if v.kind == "sentence"]
    numbers = [[int(v.id.split(".")[1]) for v in outcome.verdicts if v.id.startswith(f"{s.id}.")] for s in found]
    assert numbers == cited
    for verdict in found:
        (place,) = verdict.evidence
        assert response[place.start : place.end] == place.text


def test_a_number_without_a_context_supports_nothing_and_counts():
    outcome, llm = score("Ann ran [9].", contexts=2)
    assert (outcome.value, outcome.breakdown["citations"], llm.requests) == (0.0, 1.0, [])
    outcome, _ = score("Ann ran [1][9].", {"Ann ran.": [{1}]}, contexts=2)
    assert (outcome.breakdown["recall"], outcome.breakdown["precision"]) == (1.0, 0.5)
    assert [v.verdict for v in outcome.verdicts] == ["supported", "needed", "needless"]


def test_only_cited_contexts_are_sent_under_their_own_numbers():
    _, llm = score("Ann ran [2][4].", contexts=5)
    assert fenced(llm.requests[0])[0]["contexts"] == "[2] Context 2.\n[4] Context 4."


def test_one_by_one_each_call_sees_the_contexts_that_it_is_about():
    llm = FakeLLM(lambda request: "yes", asking="one_by_one")
    sample = Sample(retrieved_contexts=["One.", "Two.", "Three."], response="Ann ran [1][3].")
    outcome = CitationSupport(llm=llm).score(sample)
    assert sorted(fenced(request)[0]["text"] for request in llm.requests) == ["One.", "One.\nThree.", "Three."]
    assert {fenced(request)[0]["claim"] for request in llm.requests} == {"Ann ran."}
    assert outcome.value == 1.0


def test_marks_of_ones_own():
    outcome, _ = score("Ann ran <<2>>. Bob sat [1].", {"Ann ran.": [{2}]}, marks=r"<<\d+>>")
    assert outcome.breakdown == {"recall": 0.5, "precision": 1.0, "sentences": 2.0, "citations": 1.0}
    with pytest.raises(ValueError, match=r"marks: '\(' should be a valid regular expression"):
        score("", marks="(")


def test_very_many_marks_take_no_time():
    response = "Ann ran " + "[1]" * 60_000 + ". " + "[ " * 60_000 + "(source " * 60_000
    outcome, _ = score(response, {}, max_characters=None, max_input_tokens=10**9)
    assert outcome.breakdown["citations"] == 1.0
