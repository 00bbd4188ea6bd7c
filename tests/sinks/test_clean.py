import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.sinks.clean import KEY_LENGTH, clean_key, clean_text, restore_text, to_json, to_plain

# Made of what the escapes are made of, so that texts that look escaped are common.
TRICKY = st.text(st.sampled_from(["\\", "u", "0", "5", "c", "d", "8", "\x00", "\ud800", "\udfff", "é"]), max_size=12)


@given(TRICKY)
def test_nothing_is_lost(text: str) -> None:
    cleaned = clean_text(text)
    assert restore_text(cleaned) == text
    assert "\x00" not in cleaned
    cleaned.encode()  # no half pairs


@given(st.text())
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    if "\x00" not in text and "\\u" not in text:
        assert clean_text(text) == text


@pytest.mark.parametrize("length", [0, 1, KEY_LENGTH, KEY_LENGTH + 1, 10 * KEY_LENGTH])
def test_keys_are_short(length: int) -> None:
    key = clean_key("k" * length)
    assert len(key) == min(length, KEY_LENGTH)
    assert key == clean_key("k" * length)


def test_long_keys_differ_by_their_ends() -> None:
    assert clean_key("k" * 1000) != clean_key("k" * 999 + "l")
    assert clean_key("k" * 1000) != clean_key("k" * 1001)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_json_values_come_back(value: object) -> None:
    assert json.loads(to_json(value)) == value
    assert to_json(value).isascii()


@given(st.integers(min_value=4_000 * 3 - 5, max_value=20_000))
def test_integers_of_any_size(bits: int) -> None:
    back = json.loads(to_json(1 << bits))
    assert (int(back, 16) if isinstance(back, str) else back) == 1 << bits


class Failing:
    @property
    def __class__(self) -> type:
        raise RuntimeError("no")


def test_objects_that_fail() -> None:
    class Items(dict):
        def items(self) -> list:
            raise RuntimeError("no")

    class Word(str):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert to_plain([Items(a=1), Word("w")]) == ["<Items>", "w"]
    assert to_plain([Failing(), 1]) == ["<Failing>", 1]


def test_numpy_values() -> None:
    import numpy as np

    assert json.loads(to_json([np.int64(3), np.float32(0.5), np.bool_(True), np.zeros(2)])) == [
        3,
        0.5,
        "<bool>" if np.bool_.__name__ == "bool" else "<bool_>",
        "<ndarray>",
    ]
