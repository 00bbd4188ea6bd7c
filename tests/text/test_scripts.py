"""Texts whose language nobody named are split by the rules for their script."""

import importlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone import ContextRelevancy, Sample
from ragstone.testing import FakeLLM
from ragstone.text import language_of, languages, split_sentences


def split(text, language=None):
    return [sentence.text for sentence in split_sentences(text, language or language_of(text))]


TEXTS = [
    ("", "en"),
    ("It’s “long” – and dear…", "en"),
    ("Zoë naïvely ate Škvarky. Tiếng Việt.", "en"),
    ("Это книга. Да.", "en"),
    ("서울(大學)은 대한민국의 수도이다.", "en"),
    ("这是书。", "zh"),
    ("这本 book 是 LangChain 的。", "zh"),
    ("He wrote 使用 on the board and left.", "en"),
    ("これは本です。", "ja"),
    ("東京国立博物館の本。", "ja"),
    ("我们在“一之屋”の里面吃了很多东西。后来回家了。", "zh"),
    ("ﾊﾛｰ。漢字。", "ja"),
    ("यह किताब है।", "hi"),
    ("ही पुस्तक आहे. होय.", "en"),  # Marathi: full stops
    ("ঢাকা রাজধানী। এটি বড়।", "hi"),
    ("هل هذا كتاب؟ نعم.", "fa"),
    ("هذا كتاب. نعم.", "en"),
    ("یہ کتاب ہے۔ کیا؟", "ur"),
    ("Πού είναι; Εκεί.", "el"),
    ("Երևան է։ Այո։", "hy"),
    ("አዲስ ናት። ነው።", "am"),
    ("မြို့ကြီးဖြစ်သည်။", "my"),
    ("The word किताब। means book, and that is all there is to it.", "en"),
    ("\ud800漢字。", "zh"),
]


def test_the_script_says_by_whose_rules_a_text_is_split():
    assert [(text, language_of(text)) for text, _ in TEXTS] == TEXTS


@given(st.text())
def test_any_text_has_a_language_that_is_known(text):
    assert language_of(text) in languages()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("“你好。”他说。“走吧！”", ["“你好。”", "他说。", "“走吧！”"]),
        ("他问：“去哪里？”我说：『回家。』然后走了！", ["他问：“去哪里？”", "我说：『回家。』", "然后走了！"]),
        ("真的吗？！我不信。", ["真的吗？！", "我不信。"]),
        ("彼は「行く。」と言った。それから出た。", ["彼は「行く。」と言った。", "それから出た。"]),
        ("本当ですか！？　信じられない。", ["本当ですか！？　", "信じられない。"]),
        ("ماذا؟! هل هذا صحيح؟", ["ماذا؟! ", "هل هذا صحيح؟"]),
        ("क्या? हाँ।। ठीक है।", ["क्या? ", "हाँ।। ", "ठीक है।"]),
        ("。”", ["。”"]),
        ("好。」", ["好。」"]),
    ],
)
def test_marks_and_closing_quotes_stay_with_their_sentence(text, wanted):
    assert split(text) == wanted


def test_opening_quotes_that_look_like_closing_ones_stay_too():
    assert split("Han gik. ”Nej.” Hun blev.", "da")[1].startswith("”Nej.")
    assert split("Er ging. »Nein!« Sie blieb.", "de")[1].startswith("»Nein!")


@given(
    st.text(st.sampled_from("好吗书a1 。！？?!”“」「』（）»«\n।؟"), max_size=60),
    st.sampled_from(["zh", "ja", "fa", "hi", "de"]),
)
def test_no_character_is_lost_and_no_sentence_begins_with_what_closes_one(text, language):
    found = split_sentences(text, language)
    assert "".join(sentence.text for sentence in found) == (text if text.strip() else "")
    for before, sentence in pairwise(found):
        assert before.text[-1].isspace() or sentence.text[0] not in "」』）”。！？؟।"


@pytest.mark.parametrize(
    "text", ["这是书。那是什么？好！？走。", "यह है। वह क्या है? हाँ।", "یہ ہے۔ کیا؟ ہاں۔", "ဖြစ်သည်။များသည်။"]
)
def test_unspaced_texts_have_sentences_where_pysbd_cannot_be_asked_too(monkeypatch, text):
    wanted = [piece.strip() for piece in split(text)]

    def fail(self):
        raise ValueError("no")

    monkeypatch.setattr(importlib.import_module("pysbd.processor").Processor, "split_into_segments", fail)
    assert [piece.strip() for piece in split(text)] == wanted


JAPANESE = "富士山は日本で最も高い山です。高さは3776メートルです。「登れますか？」と聞きました。はい。"


def test_a_named_language_is_taken_at_its_word():
    seen = []

    def splitter(text, language, /):
        if text:
            seen.append(language)
        return [(text, 0, len(text))] if text else []

    sample = Sample(user_input="?a", retrieved_contexts=[JAPANESE, "Yes."])
    for language in (None, "en", "de"):
        ContextRelevancy(llm=FakeLLM({"ids": []}), language=language, splitter=splitter).score(sample)
    assert seen == ["ja", "en", "en", "en", "de", "de"]
