import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.local.choices import choice_probabilities
from ragstone.local.llm import choice_grammar


class Model:
    """A language model given as a table: beginning of the reply -> next tokens with probabilities."""

    def __init__(self, table):
        self.table = table
        self.asked = []

    def __call__(self, beginning):
        self.asked.append(beginning)
        return self.table[beginning]


def ask(table, *choices):
    model = Model({"": list(table.items())} if isinstance(next(iter(table.values())), float) else table)
    return choice_probabilities(model, choices), model.asked


def test_restricted_to_the_choices():
    found, asked = ask({"yes": 0.3, "no": 0.1, "The": 0.6}, "yes", "no")
    assert found == pytest.approx({"yes": 0.75, "no": 0.25})
    assert asked == [""]


def test_case_and_leading_space_are_the_same_answer():
    tokens = {"yes": 0.1, "Yes": 0.2, " YES": 0.1, "\nyes": 0.1, "No": 0.2, " no": 0.3}
    assert ask(tokens, "yes", "no")[0] == pytest.approx({"yes": 0.5, "no": 0.5})


def test_beginning_of_a_choice_counts():
    assert ask({"un": 0.3, "supp": 0.6, "s": 0.1}, "supported", "unsupported")[0] == pytest.approx(
        {"supported": 0.7, "unsupported": 0.3}
    )


def test_tokens_that_go_past_a_choice_do_not_count():
    assert ask({"yesterday": 0.9, "yes": 0.1, "no": 0.1}, "yes", "no")[0] == pytest.approx({"yes": 0.5, "no": 0.5})


@pytest.mark.parametrize("token", ["", " ", "\n"])
def test_empty_tokens_do_not_count(token):
    assert ask({token: 0.9, "yes": 0.05, "no": 0.05}, "yes", "no")[0] == pytest.approx({"yes": 0.5, "no": 0.5})


def test_shared_beginning_is_asked_deeper():
    table = {"": [("con", 0.8), (" Con", 0.2)], "con": [("sistent", 0.1), ("tradicted", 0.3), ("crete", 0.6)],
             "Con": [("tradicted", 1.0)]}  # fmt: skip
    found, asked = ask(table, "consistent", "contradicted")
    assert found == pytest.approx({"consistent": 0.2, "contradicted": 0.8})
    assert asked == ["", "con", "Con"]


def test_choice_that_begins_another_has_what_does_not_go_on():
    table = {"": [("yes", 0.5), ("no", 0.5)], "no": [("", 0.7), (".", 0.1), (" answer", 0.2)]}
    assert ask(table, "yes", "no", "no answer")[0] == pytest.approx({"yes": 0.5, "no": 0.4, "no answer": 0.1})


def test_space_counts_inside_a_choice():
    table = {"": [("not", 1.0)], "not": [(" given", 0.2), ("given", 0.3), (" said", 0.8)]}
    assert ask(table, "not given", "not said")[0] == pytest.approx({"not given": 0.2, "not said": 0.8})


def test_negligible_shared_beginning_is_not_asked():
    found, asked = ask({"": [("c", 0.005), ("consistent", 0.995)]}, "consistent", "contradicted")
    assert found == {"consistent": 1.0, "contradicted": 0.0}
    assert asked == [""]


def test_shared_beginning_that_leads_nowhere():
    table = {"": [("con", 0.5), ("consistent", 0.5)], "con": [("crete", 1.0)]}
    assert ask(table, "consistent", "contradicted")[0] == {"consistent": 1.0, "contradicted": 0.0}


def test_none_of_the_choices():
    assert ask({"<think>": 1.0}, "yes", "no")[0] is None


@pytest.mark.parametrize("choices", [(), ("yes",), ("yes", "yes"), ("yes", "Yes"), ("yes", ""), ("yes", " ")])
def test_refused(choices):
    with pytest.raises(ValueError, match="choices must be"):
        choice_probabilities(lambda beginning: [], choices)


@given(st.lists(st.text("abAB ", min_size=1, max_size=4), min_size=2, max_size=5), st.data())
def test_sums_to_one_and_ends_whatever_the_model_says(choices, data):
    if len({c.strip().casefold() for c in choices}) < len(choices) or not all(c.strip() for c in choices):
        return
    tokens = st.lists(st.tuples(st.text("abAB ", max_size=3), st.floats(0.001, 1)), max_size=6)
    found = choice_probabilities(lambda beginning: data.draw(tokens), choices)
    assert found is None or (sum(found.values()) == pytest.approx(1) and set(found) == set(choices))


def test_grammar_quotes_what_json_quotes():
    assert choice_grammar(('say "a"', "b\\", "é")) == 'root ::= "say \\"a\\"" | "b\\\\" | "é"'
