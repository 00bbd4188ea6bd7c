"""CitationSupport: what counts as a citation of which sentence."""

import itertools

import pytest

from ragstone import CitationSupport, Sample
from ragstone.testing import FakeLLM
from ragstone.text import split_sentences

from ..support.judges import fenced  # noqa: TID252


def score(response, contexts=4, **options):
    """The outcome of a judge that says yes to all, and the judge."""
    llm = FakeLLM(
        lambda request: {"answers": dict.fromkeys(request.schema["properties"]["answers"]["required"], "yes")}
    )
    texts = [f"Context {i}." for i in range(1, contexts + 1)]
    return CitationSupport(llm=llm, **options).score(Sample(retrieved_contexts=texts, response=response)), llm


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
        ("Ann ran [1-3]. Bob sat [2\u20133, 1].", [[1, 2, 3], [2, 3, 1]]),
        ("Ann ran [3-1] [1-100] [1-101].", [[3, 1, 2, *range(4, 102)]]),
        ("Ann ran [1 2]. Bob sat [1 & 2], [3] and [4].", [[1, 2], [1, 2, 3, 4]]),
        ("Ann ran [Context 1]. Bob [doc2] sat [Document #3].", [[1], [2, 3]]),
        ("Ann ran [citation:1][citation:2]. Bob sat [chunk_3, ref. 4].", [[1, 2], [3, 4]]),
        ("Ann ran [1, p. 5]. Bob sat [Source 2, pp. 3-4; Source 3].", [[1], [2, 3]]),
        ("Ann ran\u30101\u3011. Bob sat\u30102\u2020source\u3011.", [[1], [2]]),
        ("Ann ran\xb9. Bob sat.\xb2\u02d2\xb3 Cy lay on 5 km\xb2.", [[1], [2, 3], []]),
        ("Ann ran<sup>1</sup>. Bob sat <sup>[2]</sup>. Cy lay on 5 m<sup>2</sup>.", [[1], [2], []]),
        ("Ann ran (1). Bob sat (2, 3). Cy (6) won by 4 (of 5).", [[1], [2, 3], []]),
        ("Two ways: (1) Ann runs. (2) Bob sits [3].", [[], [3]]),
        ("Ann ran [[1]](http://a.b/3). Bob sat [2](#4).", [[1], [2]]),
        ("[1]: Ann ran.\n[2]: Bob sat.", [[1], [2]]),
        ("Ann ran.[1]Bob sat.[2]", [[1], [2]]),
        ("\u5b89\u8dd1\u3002[1]\u9c8d\u5750\u3002[2]", [[1], [2]]),
        ("Ann ran [\u0661]. Bob sat [1].", [[1], [1]]),
        ("Ann ran [1].\n\nSources:\n[1] Life, p. 3\n[3] Atlas", [[1]]),
        ("Ann ran [1].\n\n## References\n1. Life.\n2. Atlas.\n", [[1]]),
        ("Ann ran [1].\n**Sources:** [1], [2]", [[1]]),
        ("Ann ran [1].\n\nQuellen hier:\n- [1] Leben\n- [2] Atlas", [[1]]),
        ("Ann ran [1].\n[1]: http://a.b/c.\n[2]: http://a.b/d", [[1]]),
        ("Ann ran [1].\nSources:\nBob has two [2].", [[1], [], [2]]),
        ("Ann ran.\n- [2] Bob sat\n- [3] Cy lay", [[], [2], [3]]),
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


def test_only_cited_contexts_are_sent_under_their_own_numbers():
    _, llm = score("Ann ran [2][4].", contexts=5)
    assert fenced(llm.requests[0])[0]["contexts"] == "[2] Context 2.\n[4] Context 4."


SENTENCES = [
    "It rained in May.", "Ann wrote the book.", "The U.S. grew.", "He works at Apple Inc.", "Prices rose 3.5 percent.",
    "Why did he go?", "Stop!", 'She said "no."', "It opened at 5 p.m.", "See the map below.", "Dr. Smith agreed.",
    "The total is 12.", "The paper by Li et al. won.", "He was born in 1912.", "It has 10 m.", "Costs fell (by 3).",
    "It ends etc.", "Profit was $5 bn.",
]  # fmt: skip
STYLES = {
    "before the stop": lambda s, n: f"{s[:-1]} [{n}]{s[-1]}",
    "before it, glued": lambda s, n: f"{s[:-1]}[{n}]{s[-1]}",
    "behind": lambda s, n: f"{s} [{n}]",
    "behind, glued": lambda s, n: f"{s}[{n}]",
    "in words": lambda s, n: f"{s} (Source {n})",
    "two": lambda s, n: f"{s}[{n}][{n + 1}]",
    "at the head": lambda s, n: f"[{n}] {s}",
    "of a footnote": lambda s, n: f"{s}[^{n}]",
}


@pytest.mark.parametrize("style", STYLES)
def test_a_mark_changes_no_sentence(style):
    write = STYLES[style]
    for first, second in itertools.product(SENTENCES, repeat=2):
        plain = [sentence.text.strip() for sentence in split_sentences(f"{first} {second}")]
        outcome, _ = score(response := f"{write(first, 1)} {write(second, 3)}")
        found = [verdict for verdict in outcome.verdicts if verdict.kind == "sentence"]
        assert [verdict.text for verdict in found] == plain, response
        cited = [[int(v.id[2:]) for v in outcome.verdicts if v.id.startswith(f"{s.id}.")] for s in found]
        right = [[1, 2], [3, 4]] if style == "two" else [[1], [3]]
        if len(plain) == 1 or style == "at the head":  # behind a sentence, a mark belongs to it
            right = [[n for numbers in right for n in numbers], *[[]] * (len(plain) - 1)]
        assert cited == right, response


def test_what_looks_like_a_mark_and_is_none_is_named():
    outcome, _ = score("In [2020] Ann (2) ran [Anhang 1] to [fig. 3] and [Tab. 2] [1].")
    assert "; not read as citations: [2020], (2), [Anhang 1]." in outcome.reason
    outcome, llm = score("Ann ran [Anhang 1].")
    assert (outcome.reason, llm.requests) == ("undefined", [])
    assert outcome.detail.endswith("(0 of 0 citations); not read as citations: [Anhang 1]")
    assert "not read" not in score("Ann [sic] ran (by 3) [1].")[0].reason


def test_marks_of_ones_own():
    outcome, _ = score("Ann ran <<2>>. Bob sat [1].", marks=r"<<\d+>>")
    assert outcome.breakdown == {"recall": 0.5, "precision": 1.0, "sentences": 2.0, "citations": 1.0}
    outcome, _ = score("Ann ran<<1>><<2>> so. Bob sat.<<7>>", marks=r"<<\d+>>")
    assert [v.text for v in outcome.verdicts if v.kind == "sentence"] == ["Ann ran so.", "Bob sat."]
    with pytest.raises(ValueError, match=r"marks: '\(' should be a valid regular expression"):
        score("", marks="(")


def test_very_many_marks_take_no_time():
    hostile = ["[ ", "(source ", "[1, 1", "(1)", "it\xb9", "[1] ", "[1](#", "<sup>1", "\n[1] Life", "\n- ", "  ", "\n"]
    response = "Ann ran " + "[1]" * 60_000 + ". " + "x".join(piece * 20_000 for piece in hostile)
    outcome, _ = score(
        response, max_characters=None, max_input_tokens=10**9, splitter=lambda text, _: [(text, 0, len(text))]
    )
    assert outcome.breakdown["sentences"] == 1.0
