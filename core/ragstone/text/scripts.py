"""Which language's splitting rules suit a text whose language nobody named: its script says."""

import re

# Scripts whose sentences the English rules do not split well, by the language of the rules that do.
SCRIPTS = {
    "zh": r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "ja": r"\u3041-\u309f\u30a1-\u30ff\uff66-\uff9f",
    "hi": r"\u0900-\u0dff",  # all Indic scripts
    "fa": r"\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "el": r"\u0370-\u03ff\u1f00-\u1fff",
    "hy": r"\u0530-\u058f",
    "am": r"\u1200-\u139f",
    "my": r"\u1000-\u109f",
}
_CODES = ("en", *SCRIPTS)
_ANY = "".join(SCRIPTS.values())
_FOREIGN = re.compile(f"[{_ANY}]")
# Words, but Han characters one by one, as each is one or nearly so. The first group is all other letters.
_WORD = re.compile(
    "|".join([rf"([^\W\d_{_ANY}]+)", *(f"([{a}])" if code == "zh" else f"([{a}]+)" for code, a in SCRIPTS.items())])
)
# Marks without which a script's texts end their sentences as English does; pysbd's rules for the script then do harm:
# those for Hindi and Urdu know no full stop, those for Persian end a sentence at a colon.
_MARKS = {"hi": ("\u0964", "hi"), "fa": ("\u061f", "fa")}
_URDU_STOP = "\u06d4"


def language_of(text: str) -> str:
    """Return the language by whose rules `split_sentences` does best on a text of this one's script.

    The script is the one that most words are written in. Languages of one script are not told apart: what is in Latin
    or Cyrillic letters is split as English, in whatever language it is, so for such texts the language is better
    named. Arabic has Persian's rules, as pysbd ends sentences at commas in Arabic.

    Returns:
        One of "en", "zh", "ja", "hi", "fa", "ur", "el", "hy", "am", "my".

    Example:
        >>> [language_of(text) for text in ("Was ist das?", "これは本です。", "这本 book 很好。")]
        ['en', 'ja', 'zh']
        >>> [language_of(text) for text in ("यह किताब है।", "ما هذا؟")]
        ['hi', 'fa']
    """
    if text.isascii() or not _FOREIGN.search(text):
        return "en"
    words = dict.fromkeys(_CODES, 0)
    for word in _WORD.finditer(text):
        words[_CODES[(word.lastindex or 1) - 1]] += 1
    if words["ja"] * 10 > words["zh"]:  # Japanese is written in both; a kana or two may be in a Chinese text
        words["ja"] += words.pop("zh")
    code = max(words, key=words.__getitem__)
    if code == "fa" and _URDU_STOP in text:
        return "ur"
    mark, own = _MARKS.get(code, ("", code))
    return own if mark in text else "en"
