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


@pytest.mark.parametrize(
    ("tokens", "choices", "wanted"),
    [
        ({"yes": 0.3, "no": 0.1, "The": 0.6}, ("yes", "no"), {"yes": 0.75, "no": 0.25}),
        ({"yes": 0.1, " YES": 0.2, "\nyes": 0.2, "No": 0.2, " no": 0.3}, ("yes", "no"), {"yes": 0.5, "no": 0.5}),
        ({"un": 0.3, "supp": 0.6, "s": 0.1}, ("supported", "unsupported"), {"supported": 0.7, "unsupported": 0.3}),
        ({"yesterday": 0.8, "": 0.1, " ": 0.1, "yes": 0.1, "no": 0.1}, ("yes", "no"), {"yes": 0.5, "no": 0.5}),
        ({"<think>": 1.0}, ("yes", "no"), None),
    ],
)
def test_the_mass_of_the_tokens_that_begin_a_choice(tokens, choices, wanted):
    result, asked = ask(tokens, *choices)
    assert result == (wanted and pytest.approx(wanted))
    assert asked == [""]


@pytest.mark.parametrize(
    ("table", "choices", "wanted", "deeper"),
    [
        (
            {"": [("con", 0.8), (" Con", 0.2)], "con": [("sistent", 0.1), ("tradicted", 0.3), ("crete", 0.6)],
             "Con": [("tradicted", 1.0)]},
            ("consistent", "contradicted"),
            {"consistent": 0.2, "contradicted": 0.8},
            ["con", "Con"],
        ),
        (  # a choice that begins another has what does not go on
            {"": [("yes", 0.5), ("no", 0.5)], "no": [("", 0.7), (".", 0.1), (" answer", 0.2)]},
            ("yes", "no", "no answer"),
            {"yes": 0.5, "no": 0.4, "no answer": 0.1},
            ["no"],
        ),
        (  # too little of the mass to ask for
            {"": [("c", 0.005), ("consistent", 0.995)]},
            ("consistent", "contradicted"),
            {"consistent": 1.0, "contradicted": 0.0},
            [],
        ),
    ],
)  # fmt: skip
def test_a_shared_beginning_is_asked_deeper(table, choices, wanted, deeper):
    result, asked = ask(table, *choices)
    assert result == pytest.approx(wanted)
    assert asked == ["", *deeper]


@pytest.mark.parametrize("choices", [("yes", "Yes"), ("yes", " ")])
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
