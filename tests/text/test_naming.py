"""A language is named where the text says it plainly, and never taken for another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.text.sentences import language_name

TEXTS = {
    "English": "The October Manifesto (Russian: Октябрьский манифест) was issued in 1905, and it is not forgotten.",
    "German": "Die Brücke wurde 1931 eröffnet und ist noch immer die längste im Land.",
    "French": "Le pont a été ouvert en 1931 et c'est toujours le plus long du pays.",
    "Spanish": "El puente se abrió en 1931 y todavía es el más largo del país.",
    "Italian": "Il ponte è stato aperto nel 1931 ed è ancora il più lungo della regione.",
    "Portuguese": "A ponte foi aberta em 1931 e não é mais a maior das pontes do país.",
    "Dutch": "De brug werd in 1931 geopend en is niet meer de langste van het land, maar wel van de stad.",
    "Russian": "Мост был открыт в 1931 году, и это всё ещё не самый длинный мост.",
    "Hindi": "पुल 1931 में खोला गया था और यह देश का सबसे लंबा पुल है।",
    "Arabic": "افتتح الجسر عام 1931، وهو أطول جسر في البلاد.",
    "Chinese": "这座桥于1931年开通，是全国最长的桥。",
    "Japanese": "この橋は1931年に開通し、国内で最も長い橋です。",
    "Korean": "이 다리는 1931년에 개통되었으며 나라에서 가장 깁니다.",
}
UNKNOWN = [
    "",
    "42 %, 3.5 kg",
    "Jane Austen",
    "die die die die",  # one word, however often
    "Löwe Tiger Bär Affe und Elefant Nashorn Zebra Gnu Strauß Giraffe Hyäne der Panther Gepard Luchs Puma Jaguar",
    "این پل در سال ۱۹۳۱ باز شد و بلندترین پل کشور است.",  # Persian
]


def test_each_language():
    assert {language: language_name(text) for language, text in TEXTS.items()} == {name: name for name in TEXTS}


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_does_not_say_plainly(text):
    assert language_name(text) is None


@given(st.text())
def test_any_text_at_all(text):
    name = language_name(text)
    assert name is None or name.istitle()
