import importlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragstone.text import WINDOW, Sentence, language_of, languages, split_sentences

split_sentences("")  # Python warns of pysbd's own source where it was never compiled before
pysbd = importlib.import_module("pysbd")
Processor = importlib.import_module("pysbd.processor").Processor

PLACEHOLDERS = "∯♬♭♨☝☉☈☇☄ȸȹƪ♟♝☏∮✂⌬⎋ᓰᓱᓳᓴᓷᓸ&"
PARAGRAPH = (
    "The council measured the old bridge in the spring. Dr. Meyer bought 3.5 tons of apples! Did Acme Inc. of Ohio "
    'describe a map (printed in 1921)? She would not accept what he called "the plan". No one at the U.S. branch '
    "painted Mr. Brown's garden. It opened at 5 p.m. on Friday. "
)


def assert_tiles(text, found):
    position = 0
    for sentence in found:
        assert isinstance(sentence, Sentence)
        assert sentence.start == position
        assert sentence.text == text[sentence.start : sentence.end]
        assert sentence.text.strip()
        position = sentence.end
    assert position == (len(text) if text.strip() else 0)


@pytest.fixture
def windows(monkeypatch):
    """Lengths of the texts that pysbd is given."""
    sizes: list[int] = []
    process = Processor.process

    def count(self):
        sizes.append(len(self.text))
        return process(self)

    monkeypatch.setattr(Processor, "process", count)
    return sizes


def test_a_sentence_is_a_triple_that_slices_the_text():
    text = "It is so. Is it?  Yes!\nGood.\n"
    found = split_sentences(text)
    assert found == [("It is so. ", 0, 10), ("Is it?  ", 10, 18), ("Yes!\n", 18, 23), ("Good.\n", 23, 29)]
    assert_tiles(text, found)


@pytest.mark.parametrize("text", ["", " ", "\n\t\u2028\r\n", "\x1c\x1f", " " * 20_000])
def test_no_text_has_no_sentences(text):
    assert split_sentences(text) == []


def test_an_unknown_language_is_refused_with_the_known_ones_named():
    with pytest.raises(ValueError, match=r"'xx'; the languages are: am, ar, .*, zh$"):
        split_sentences("", "xx")


SAMPLES = {
    "am": "እንደምን አለህ፧መልካም ቀን ይሁንልህ።",
    "ar": "سؤال وجواب: ماذا حدث؟ نعم.",
    "de": "Das ist z. B. Dr. Meyer. Am 3. Mai kam er!",
    "el": "Με συγχωρείτε· πού είναι; Ευχαριστώ. Ναι.",
    "hi": "सच्चाई क्या है? मैं जाता हूँ।",
    "hy": "Ի՞նչ ես մտածում: Ոչինչ:",
    "ja": "これはペンです。それはマーカーです。",
    "kk": "Мұхитқа тікелей шыға алмайды. Жақсы.",
    "mr": "आज दसरा आहे. आज खूप शुभ दिवस आहे.",
    "my": "ခင္ဗ်ားနာမည္ဘယ္လိုေခၚလဲ။၇ွင္ေနေကာင္းလား။",
    "ru": "Он родился в 1990 г. в Москве. Да!",
    "sk": "Ide o spoločnosť s. r. o. v meste. Áno.",
    "ur": "کیا حال ہے؟ ٹھیک ہے۔",
    "zh": "安永已聯繫周怡安親屬,協助辦理簽證相關事宜,周怡安家屬1月1日晚間搭乘東方航空班機抵達上海。好的!",
}


@pytest.mark.parametrize("language", languages())
def test_every_language_splits_as_pysbd_does(language):
    sample = SAMPLES.get(language, "Uno dos. Tres Dr. Cuatro? Cinco! Mr. Seis no. 7.")
    plain = pysbd.Segmenter(language=language, clean=False).segment(sample)
    found = split_sentences(sample, language)
    assert_tiles(sample, found)
    assert [s.text.strip() for s in found] == [s.strip() for s in plain if s.strip()]
    long = (sample + "\n") * (3 * WINDOW // len(sample))
    assert len(split_sentences(long, language)) == len(found) * (3 * WINDOW // len(sample))


@settings(max_examples=300, deadline=None)
@given(
    st.text(
        st.one_of(st.characters(exclude_categories=()), st.sampled_from(PLACEHOLDERS + ".?! \n'\"()[]1a")), max_size=80
    ),
    st.sampled_from(languages()),
)
def test_no_character_is_lost_from_any_text(text, language):
    assert_tiles(text, split_sentences(text, language))


@settings(max_examples=30, deadline=None)
@given(st.text("ab.?!\"'()1 \n∯☉\ud800", min_size=50, max_size=600), st.sampled_from(["en", "de", "ru", "sk"]))
def test_no_character_is_lost_across_windows(unit, language):
    text = unit * (2 * WINDOW // len(unit))
    assert_tiles(text, split_sentences(text, language))


QUOTED = 'He said, "' + "They come and go. " * 30 + 'We see." Then he left the town. '


@pytest.mark.parametrize("unit", [PARAGRAPH, QUOTED, PARAGRAPH + QUOTED + "\n"])
def test_a_long_text_is_split_as_pysbd_does(unit):
    text = unit * (4 * WINDOW // len(unit))  # several windows; the quotes have no sentence end to pysbd
    plain = pysbd.Segmenter(language="en", clean=False).segment(text)
    assert [s.text for s in split_sentences(text)] == plain


def test_the_work_grows_with_the_length_only(windows):
    text = PARAGRAPH * 70
    work = []
    for times in (1, 4):
        windows.clear()
        split_sentences(text * times, "es")  # plain English needs no pysbd
        assert max(windows) <= 1.1 * WINDOW
        work.append(sum(windows) / (len(text) * times))
    assert work[1] < 1.1 * work[0] < 2


HOSTILE = ["a", "(", '"', " '", "\0", "\ud800", "👩\u200d👧", "a.\r\n", "!!!x", "∯", "&ᓴ&", '"\\', "--", "1. ", "a) b) ",
           "mr. ", "U.S. A ", ". . . ", "x.[1, 2, 3", " \t", "{is} ", "ſ "]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_neither_crashes_nor_hangs(unit):
    text = unit * (2 * WINDOW // len(unit))
    assert_tiles(text, split_sentences(text))


def test_a_sentence_longer_than_a_window_stays_in_one_piece(windows):
    text = "(" + "word " * 4000 + "end) of it." + " " * 2000 + "Then it ends."
    assert [s.end for s in split_sentences("Hello there. " + text)] == [13, 13 + text.index("Then"), 13 + len(text)]
    assert max(windows) <= 1.1 * WINDOW


def test_pysbd_raises_on_text_that_makes_no_regular_expression():
    text = "Das ist c(-à-d und c.-à-d. so. Ja."
    with pytest.raises(Exception):  # noqa: B017, PT011 (re.error, or what else pysbd runs into)
        pysbd.Segmenter(language="de").segment(text)
    assert_tiles(text, split_sentences(text, "de"))


WORDS = r"""
    the The cat a A I i ii c is no No p Mr Dr e.g U.S U.S.A etc art may town Élan été 1 12 123 1984 3.5 10.25
    9 10 1,000 a) (a) (see (1993) (12) 12) 1994) (born 1921) Yahoo Yum well-known rock- -- - – Brown's boys'
    don’t "plan" "a b" " “plan” “ ( ) co Co KG Inc & 5% a.m p.m PM A. It What st ph v vs sea ; : viii mix ſo
    miſs 20th x@y pdf ° \ [12] B. * 1. 2. -1 12:30 B2B {is} d(phil d.phil İs
"""
MARKS = ["", "", "", ",", ".", ".", ".", "?", "!", "...", "?!", "!!!", '."', '?"', ".)", ").", "'.", ". . ."]
GAPS = [" ", " ", " ", " ", "  ", "\n", " \n\n", ""]
PROSE = st.lists(st.tuples(*map(st.sampled_from, (WORDS.split(), MARKS, GAPS))).map("".join), min_size=1, max_size=14)


def starts_of_pysbd(text, language="en"):
    """Where the sentences of pysbd's rules alone begin; its search for them in the text now and then misplaces one."""
    try:
        sentences = [each.strip() for each in pysbd.Segmenter(language=language).processor(text).process()]
    except Exception:
        return None
    starts, end = [], 0
    for sentence in filter(None, sentences):
        start = text.find(sentence, end)
        if start < 0 or text[end:start].strip():
            return None  # a character of it was changed on the way
        starts, end = [*starts, start], start + len(sentence)
    return starts


@settings(max_examples=300, deadline=None)
@given(PROSE.map("".join).map(str.strip), st.sampled_from(["en", "en", "en", "es", "it"]))
def test_sentences_are_those_of_pysbd(text, language):
    starts = starts_of_pysbd(text, language)
    assume(starts is not None)
    assume(language == "en" or not any(text[start] in "!?”" for start in starts))  # those are mended
    assert [each.start for each in split_sentences(text, language)] == starts


@pytest.mark.parametrize("text", ["She lives in the U.S. I met her there.", "He told me. I\nwent home. It was late."])
def test_an_i_behind_an_abbreviation_is_read_as_pysbd_does(text):
    assert [each.start for each in split_sentences(text)] == starts_of_pysbd(text)


SIX = {
    "English": "The keeper of the lighthouse wrote down 12 ships, e.g. the Ada, at 5 p.m. | He slept (badly) until Dr. Lund came! | "
    'Was it No. 7? | She said "It is late. Go home." and left. | “Why?” Nobody knew. | It cost $3.50 in 1984. | U.S. boats, i.e. two | See part I. | The map is old. | Buy 1. bread 2. milk | So it is.[3]',
    "German": "Die Brücke wurde 1921 gebaut. | Am 3. Mai kam Hr. Dr. Maier z. B. aus Köln! | Er fragte: „Wo ist das?“ und ging. | "
    "Das kostet ca. 5,20 € (inkl. MwSt.). | Warum nicht? | Die Straße ist lang; sie führt nach Ulm. | Siehe S. 12 ff. im Text",
    "French": "Le musée ouvre à 10 h. | Qui l’a vu ? | Mme Roy et M. Petit sont venus ! | « Il pleut. Rentrons », dit-elle. | "
    "Le prix, env. 3,5 €, a baissé. | C'est l'hiver, etc. | Cf. p. 12 du livre",
    "Spanish": "El río nace en la sierra. | ¿Dónde está la Sra. López? | ¡Qué frío! | Dijo: «No voy. Es tarde». | "
    "Cuesta 1.200 pesos (aprox. 60 $). | Véase la pág. 7. | En EE. UU. llueve más",
    "Italian": 'Il porto è antico. | L’ing. Rossi arrivò alle 9.30. | Perché no? | Disse: "Vengo. Aspetta." | Costa 5 € ca. | '
    "È l'ultima! | Vedi art. 3 della legge",
    "Russian": "Город стоит на реке. | Он родился в 1990 г. в Омске. | Где это? | «Да. Нет», — сказал он. | Стоит 5 тыс. руб. | "
    "Вот и всё! | См. рис. 4 и т. д",
}


@pytest.mark.parametrize("language", SIX)
@settings(max_examples=90, deadline=None)
@given(st.data())
def test_paragraphs_of_six_languages_are_split_as_pysbd_does(language, data):
    sentences = st.sampled_from(SIX[language].split(" | "))
    gaps = st.sampled_from([" ", " ", " ", "  ", "\n", "\n\n", " \xa0"])
    pairs = data.draw(st.lists(st.tuples(sentences, gaps), min_size=1, max_size=8))
    text = "".join(sentence + gap for sentence, gap in pairs).strip()
    assert [each.start for each in split_sentences(text)] == starts_of_pysbd(text)


def test_paragraphs_of_public_data_are_split_as_pysbd_does():
    files = sorted((Path(__file__).parents[3] / "shared/data").rglob("*.jsonl"))
    if not files:
        pytest.skip("there is no ../shared/data")
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines()[::7]:
            for text in re.findall(r'"((?:[^"\\]|\\.){60,3000})"', line):
                paragraph = json.loads(f'"{text}"').strip()
                starts = starts_of_pysbd(paragraph) if language_of(paragraph) == "en" else None
                if starts is not None:
                    assert [each.start for each in split_sentences(paragraph)] == starts


def test_a_long_list_of_references_does_not_hang():
    text = "So it is.[" + "101, " * 3000 + "102] and so on. " + "It is.[" + "1" * 5000 + " so."
    assert "".join(s.text for s in split_sentences(text)) == text


@pytest.mark.parametrize(
    ("found", "starts"),
    [
        (["One.", "2!?", "Three.", "Four."], [0, 5, 9, 16]),
        (["One.", "☉", "Three.", "Four."], [0, 9, 16]),  # one was altered
        (["One.", "Four."], [0, 16]),  # some were dropped
        (["One.", "Four.", "Five."], [0, 16]),  # one too many
        (["", " ", "One."], [0]),
    ],
)
def test_sentences_are_found_back(monkeypatch, found, starts):
    monkeypatch.setattr(Processor, "process", lambda self: found)
    text = "One. 2!? Three. Four." + " " * len("".join(found))  # no two alike: what was split is remembered
    assert [each.start for each in split_sentences(text, "es")] == starts
