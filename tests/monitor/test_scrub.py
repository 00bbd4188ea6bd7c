"""What is taken out of error texts and outcomes before they are kept."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone import Sample, Score, Unscored, Verdict
from ragstone.monitor.redaction import storable, without_quotations
from ragstone.outcome import Evidence

QUOTED = "The green heron nests in trees near the water."


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        (f"400: {QUOTED}!", "400: [text]!"),
        (f"{QUOTED[:30]}... was too long", "[text]... was too long"),
        (f"a {QUOTED[:23]}", f"a {QUOTED[:23]}"),
        ("Who? Who nests?", "Who? [text]"),
    ],
)
def test_what_a_message_quotes(detail: str, expected: str) -> None:
    assert without_quotations(detail, [QUOTED, "Who nests?", "Who?", ""]) == expected


@given(st.text("ab", max_size=60), st.lists(st.slices(60) | st.text("ab", max_size=9), max_size=5))
def test_every_quotation_is_found(text: str, parts: list[str | slice]) -> None:
    detail = "".join(text[part] if isinstance(part, slice) else part for part in parts)
    length = min(24, len(text))
    starts = range(len(detail) - length + 1) if length >= 8 else range(0)
    quoted = {at for start in starts if detail[start : start + length] in text for at in range(start, start + length)}
    expected = "".join("?" if at in quoted else letter for at, letter in enumerate(detail))
    assert without_quotations(detail, [text]) == re.sub(r"\?+", "[text]", expected)


def test_what_is_kept_of_an_outcome() -> None:
    evidence = Evidence(field="retrieved_contexts", chunk=0, start=4, end=9, text="green")
    verdict = Verdict(id="1", kind="sentence", text=QUOTED, verdict="relevant", probability=0.5, evidence=(evidence,))
    score = Score(metric="m", value=0.5, reason=QUOTED, breakdown={"a": 1.0}, verdicts=(verdict,), version="1")
    sample = Sample(user_input="Where?", retrieved_contexts=[QUOTED])
    assert storable(score, sample, store_text=True) == score
    found = storable(score, sample, store_text=False)
    assert "green" not in found.model_dump_json()
    assert isinstance(found, Score)
    assert (found.value, found.breakdown, found.verdicts[0].verdict) == (0.5, {"a": 1.0}, "relevant")
    assert (found.verdicts[0].evidence[0].start, found.verdicts[0].evidence[0].end) == (4, 9)


@pytest.mark.parametrize("store_text", [True, False])
def test_what_is_kept_of_an_unscored_one(store_text: bool) -> None:
    sample = Sample(retrieved_contexts=[QUOTED])
    detail = f"ValueError: sk-abcdefghijkl cannot read {QUOTED}"
    error = Unscored(metric="m", reason="judge_error", detail=detail, version="1")
    found = storable(error, sample, store_text=store_text)
    assert found.detail == f"ValueError: [hidden] cannot read {QUOTED if store_text else '[text]'}"  # type: ignore[union-attr]
    unread = Unscored(metric="m", reason="judge_unparseable", detail="two objects: {'a': 'green'}", version="1")
    found = storable(unread, sample, store_text=store_text)
    assert ("green" in found.detail) == store_text  # type: ignore[union-attr]
