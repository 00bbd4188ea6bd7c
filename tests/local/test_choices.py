import pytest

from ragstone.local.models import probabilities_by_asking


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
    return probabilities_by_asking(model, choices), model.asked


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
        probabilities_by_asking(lambda beginning: [], choices)
