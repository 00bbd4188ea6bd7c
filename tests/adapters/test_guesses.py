"""What a preview guesses where no usual name is: by names, else by what is there; of several it chooses none."""

from types import SimpleNamespace

import pytest

from ragstone.adapters.guesses import candidates, entries_in, guess, meant_by_words
from ragstone.fields.read import PLAIN

Q, A, DRAFT = "Who wrote Emma?", "Jane Austen wrote the novel Emma.", "Jane Austen did, I think."
TEXTS = ["Emma is a novel by Jane Austen.", "It was published in 1815."]
HITS = [{"id": number, "text": text, "score": 0.5} for number, text in enumerate(TEXTS)]
OWN = [SimpleNamespace(key=number, words=text) for number, text in enumerate(TEXTS)]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("questionText", "user_input"),
        ("frage", "user_input"),
        ("retrievedPassages", "retrieved_contexts"),
        ("resultats_livres", "retrieved_contexts"),
        ("answer_sources", "retrieved_contexts"),
        ("reponse_finale", "response"),
        ("Réponse", "response"),
        ("awnser", "response"),
        ("gold_answer_text", "response"),
        ("expected", "reference"),
        ("plan_recherche", None),
        ("k", None),
        ("答案", None),
    ],
)
def test_names_mean_fields_by_their_words(name, field):
    assert meant_by_words(name) == field


@pytest.mark.parametrize(
    ("field", "entries", "names", "chosen"),
    [
        # By name.
        ("response", {"antwort": A, "note": DRAFT}, ["antwort"], "antwort"),
        ("response", {"report": {"final": A, "outline": DRAFT}}, ["report.final"], 0),
        ("response", {"draft_reply": DRAFT, "polished_reply": A}, ["draft_reply", "polished_reply"], None),
        ("retrieved_contexts", {"resultats_livres": "\n".join(TEXTS), "plan": ["a", "b"]}, ["resultats_livres"], 0),
        ("retrieved_contexts", {"state": {"my_chunks": TEXTS}}, ["state.my_chunks"], 0),
        ("user_input", {"frage": Q, "tenant": "acme"}, ["frage"], 0),
        ("user_input", {"wish": Q, "tenant": "acme"}, ["wish"], 0),
        ("user_input", {"wish": A, "tenant": "acme"}, ["wish", "tenant"], "wish"),
        # By what is there: the longest text that is no question, a list of documents before one of texts.
        ("response", {"told": A, "grade": "yes", "rewritten": Q, "file": "/a/b.pdf"}, ["told", "grade"], "told"),
        ("response", {"told": A, "first": DRAFT}, ["told", "first"], None),
        ("response", {"rewritten_query": A, "nothing": " ", "k": 3}, [], None),
        ("retrieved_contexts", {"fundus": HITS, "tags": ["a", "b"]}, ["fundus"], 0),
        ("retrieved_contexts", {"tags": ["a", "b"], "told": A}, ["tags"], 0),
        ("retrieved_contexts", {"sources": ["a.pdf", "https://b.example/c"], "alpha": TEXTS}, ["alpha"], 0),
        ("retrieved_contexts", {"alpha": TEXTS, "beta": TEXTS[:1]}, ["alpha", "beta"], None),
        ("retrieved_contexts", {"pairs": [(hit, 0.5) for hit in HITS], "empty": []}, ["pairs"], 0),
        # What nothing is known of.
        ("retrieved_contexts", {"kept": OWN}, ["kept"], 0),
        ("retrieved_contexts", {"kept": [{"wording": text} for text in TEXTS]}, ["kept"], 0),
        ("retrieved_contexts", {"numbers": [1, 2], "objects": [object()]}, [], None),
    ],
)
def test_candidates(field, entries, names, chosen):
    found = candidates(field, entries_in(entries, PLAIN), PLAIN)
    meant = guess(found)
    assert [each.name for each in found] == names
    assert (meant and meant.name) == (names[0] if chosen == 0 else chosen)


def test_what_is_known_or_says_the_same_is_no_candidate():
    assert candidates("response", {"told": A, "echo": Q}, PLAIN, known=[Q]) == candidates(
        "response", {"told": A}, PLAIN
    )
    read_already = {"my_answer": f"{A} [1]", "other_answer": DRAFT, "told": "Something else."}
    assert [each.name for each in candidates("response", read_already, PLAIN, read=A)] == ["other_answer"]


def test_texts_of_own_things_have_their_way_there():
    (found,) = candidates("retrieved_contexts", {"kept": OWN}, PLAIN)
    (in_mappings,) = candidates("retrieved_contexts", {"kept": [{"wording": text} for text in TEXTS]}, PLAIN)
    assert (found.value, found.within) == (TEXTS, "each.words")
    assert (in_mappings.value, in_mappings.within) == (TEXTS, 'each["wording"]')


def test_what_holds_itself_comes_to_an_end():
    endless: dict[str, object] = {"told": A}
    endless["again"] = endless
    assert [name for name in entries_in(endless, PLAIN) if name.endswith("told")][:2] == ["told", "again.told"]
