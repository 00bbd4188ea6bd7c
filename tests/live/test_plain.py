from hypothesis import given
from hypothesis import strategies as st

from ragstone.plain import KEY_LENGTH, clean_key, clean_text

from .cases import restore_text

# Made of what the escapes are made of, so that texts that look escaped are common.
TRICKY = st.text(st.sampled_from(["\\", "u", "0", "5", "c", "d", "8", "\x00", "\ud800", "\udfff", "é"]), max_size=12)


@given(TRICKY)
def test_nothing_is_lost(text: str) -> None:
    cleaned = clean_text(text)
    assert restore_text(cleaned) == text
    assert "\x00" not in cleaned
    cleaned.encode()  # no half pairs


def test_keys_are_short_and_differ_by_their_ends() -> None:
    for length in (0, 1, KEY_LENGTH, KEY_LENGTH + 1, 10 * KEY_LENGTH):
        key = clean_key("k" * length)
        assert len(key) == min(length, KEY_LENGTH)
        assert key == clean_key("k" * length)
    assert len({clean_key("k" * 1000), clean_key("k" * 999 + "l"), clean_key("k" * 1001)}) == 3
