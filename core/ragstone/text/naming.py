"""The name of a text's language, by script and common words, for a judge that has to write in it."""
# ruff: noqa: RUF001 - the words are in their own letters

import re
from collections import Counter

from ragstone.text.sentences import SCRIPTS

_MOST = 2000  # characters looked at: enough to tell, and little to do for a book
_SCRIPTS = {
    "Chinese": SCRIPTS["zh"],
    "Japanese": SCRIPTS["ja"],
    "Korean": r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "Arabic": SCRIPTS["fa"],
    "Greek": SCRIPTS["el"],
    "Hebrew": r"\u0590-\u05ff",
}
_NOT_ARABIC = re.compile("[\u0679-\u06d5]")  # letters of Persian, Urdu and others in Arabic script
# Common words of more than one letter, each weighed less the more of the languages have it.
_WORDS = {
    "English": """the of and in is are was were be been it its at on for to that this these does did what when where
        who how which can should there from with by have has had an not you your they their he she his her or but as
        we if will would no yes about after all also any between during first into made many more most much only""",
    "German": """der die das den dem des ein eine einen einem einer und im ist sind war wird werden wurde wurden es am
        um auf für zu zum zur dass wie was wann wo wer welche von vom mit bei nicht ich sie er auch sich aus nach über
        aber oder kann hat haben nur noch als ja nein leider ihr ihre seine sein diese dieser dieses bis""",
    "French": """le la les un une des du de et est sont était ont été il elle en au aux dans sur pour par que qui quoi
        où quand comment ce cette ces ne pas plus avec je vous nous ils son sa ses se qu mais ou oui peut peuvent être
        entre sans tous aussi leur leurs si très fait deux""",
    "Spanish": """el la los las un una unos de del en es son era fue ha han se su sus al por para que qué cuándo dónde
        quién cómo cuál con no lo está están hay más como pero sí este esta desde sobre muy yo usted cuando donde
        quien entre hasta sin ser puede pueden también todos cada años según tiene tienen sólo porque nos""",
    "Italian": """il lo la gli le un una uno di del della dei delle dell sono era ha hanno al alla ai nel nella in per
        che chi cosa quando dove come con non si da dal dalla su sul anche più ma questo questa io ed sì""",
    "Portuguese": """os as um uma de do da dos das em no na nos nas são foi era tem têm ao por para que quem quando
        onde como com não se mais mas este esta isso ou seu sua pelo pela você sim muito também""",
    "Dutch": """de het een en van in is zijn was waren wordt worden werd op te voor dat die dit wat wanneer waar wie
        hoe welke met niet ik je hij zij ook aan bij naar om er maar of kan heeft hebben nog als uit door ja nee""",
    "Russian": """и в не на что это как он она они с по из к от для о но или был была было были есть где когда кто
        который которая которые также его их я вы мы за при до у же нет да""",
    "Hindi": """है हैं में के की का को से और पर यह वह ने था थे थी नहीं क्या कब कहाँ कौन कैसे कि एक भी हो या लिए कर
        इस""",
}
_COMMON = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_SHARED = Counter(word for words in _COMMON.values() for word in words)
_LETTER = r"[^\W\d_]"
_WORD = rf"{_LETTER}(?:{_LETTER}|[\u0300-\u036f\u0900-\u0963])*"


def language_name(text: str) -> str | None:
    """Return the English name of a text's language where its beginning says so plainly; None elsewhere.

    Plainly: more than half of its letters are of a script that belongs to one language (kana make Japanese of Han
    characters); or two different common words of a language are in it, at least every seventh of its words is one, and
    they outweigh those of any other language by half. It knows the large languages only.

    Example:
        >>> [language_name(text) for text in ("Das Museum ist am Sonntag auf.", "これは本です。", "Oslo.")]
        ['German', 'Japanese', None]
    """
    text = text[:_MOST]
    if not text.isascii():
        letters = "".join(re.findall(_LETTER, text))
        counts = {language: len(re.findall(f"[{script}]", letters)) for language, script in _SCRIPTS.items()}
        if counts["Japanese"] * 10 > counts["Chinese"]:  # a kana or two may be in a Chinese text
            counts["Japanese"] += counts.pop("Chinese")
        most = max(counts, key=counts.__getitem__)
        if counts[most] * 2 > len(letters):
            return None if most == "Arabic" and _NOT_ARABIC.search(letters) else most
    words = [word.casefold() for word in re.findall(_WORD, text)]
    hits = {language: [word for word in words if word in common] for language, common in _COMMON.items()}
    weights = {language: sum(1 / _SHARED[word] for word in own) for language, own in hits.items()}
    first, second = sorted(weights, key=weights.__getitem__, reverse=True)[:2]
    own = hits[first]
    plain = len(set(own)) > 1 and len(own) * 7 >= len(words) and weights[first] * 2 >= weights[second] * 3
    return first if plain else None
