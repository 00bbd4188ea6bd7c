"""A language is named where the text says it plainly, and never taken for another."""

from hypothesis import given
from hypothesis import strategies as st

from ragstone.metrics.response_relevancy import write_in
from ragstone.text.naming import language_name

TEXTS = {
    "English": "The bridge was opened in 1931, and it is still the longest one in the country.",
    "German": "Die Brücke wurde 1931 eröffnet und ist noch immer die längste im Land.",
    "French": "Le pont a été ouvert en 1931 et c'est toujours le plus long du pays.",
    "Spanish": "El puente se abrió en 1931 y todavía es el más largo del país.",
    "Italian": "Il ponte è stato aperto nel 1931 ed è ancora il più lungo della regione.",
    "Portuguese": "A ponte foi aberta em 1931 e não é mais a maior das pontes do país.",
    "Dutch": "De brug werd in 1931 geopend en is niet meer de langste van het land, maar wel van de stad.",
    "Polish": "Most został otwarty w 1931 roku i nie jest już najdłuższy, ale był nim przez lata.",
    "Turkish": "Köprü 1931 yılında açıldı ve bu ülke için çok önemli bir yer oldu.",
    "Russian": "Мост был открыт в 1931 году, и это всё ещё не самый длинный мост.",
    "Hindi": "पुल 1931 में खोला गया था और यह देश का सबसे लंबा पुल है।",
    "Arabic": "افتتح الجسر عام 1931، وهو أطول جسر في البلاد.",
    "Persian": "این پل در سال ۱۹۳۱ باز شد و بلندترین پل کشور است.",
    "Urdu": "یہ پل 1931 میں کھولا گیا تھا اور یہ ملک کا سب سے لمبا پل ہے۔",
    "Chinese": "这座桥于1931年开通，是全国最长的桥。",
    "Japanese": "この橋は1931年に開通し、国内で最も長い橋です。",
    "Korean": "이 다리는 1931년에 개통되었으며 나라에서 가장 깁니다.",
    "Greek": "Η γέφυρα άνοιξε το 1931.",
    "Hebrew": "הגשר נפתח בשנת 1931.",
    "Thai": "สะพานเปิดในปี 1931",
}


UNKNOWN = [
    "",
    "1931",
    "42 %, 3.5 kg",
    "Jane Austen",
    "print('x')",
    "die die die die",  # one word, however often
    "Löwe Tiger Bär Affe und Elefant Nashorn Zebra Gnu Strauß Giraffe Hyäne der Panther Gepard Luchs Puma Jaguar",
    "Hello world 你好",
    "Hello worlds ที่นี่ที่",  # 10 letters, 5 letters with their vowel signs and tones
    "دا پل په ۱۹۳۱ کال کې پرانیستل شو.",  # Pashto, which has Arabic's and Persian's letters too
]
ENGLISH = [
    "The October Manifesto (Russian: Октябрьский манифест) was issued in 1905, and it is not forgotten.",
    'He said "Das ist die Frage" to her, and they left for the station.',
    "He wrote 使用 on the board and left.",
    "The end is in the book. " * 100 + "Das ist die Frage und der Anfang. " * 1000,  # only the beginning is read
]


def test_each_language():
    assert {language: language_name(text) for language, text in TEXTS.items()} == {name: name for name in TEXTS}
    assert [language_name(text) for text in ENGLISH] == ["English"] * len(ENGLISH)


def test_what_does_not_say_plainly():
    assert {text: name for text in UNKNOWN if (name := language_name(text))} == {}


def test_the_judge_is_told_by_the_first_text_that_says():
    assert write_in("1931", TEXTS["German"]) == " Write in German."
    assert write_in(TEXTS["English"], TEXTS["German"]) == ""
    assert write_in("1931", "Oslo") == ""


@given(st.text())
def test_any_text_at_all(text):
    name = language_name(text)
    assert name is None or (name.istitle() and language_name(text + "\n") == name)
