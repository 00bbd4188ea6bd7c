"""Texts into sentences with pysbd's rules, in linear time and without losing a character; and their languages."""
# ruff: noqa: RUF001 - the words are in their own letters

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

from ragstone.text import _pysbd
from ragstone.text.prose import prose_starts

WINDOW = 6000
"""Longest text, in characters, that is split in one piece: some 20 milliseconds of computing at most.

A caller on an event loop can split this much in place and should use a thread for more.
"""

# A sentence that ends this close to the end of a window might have ended elsewhere, had the window gone on
# (a quote that is still open, an abbreviation cut in two): the next window decides.
_MARGIN = 1200
# What a window is shown of the text in front of it, so that its beginning is not taken for the text's.
_CONTEXT = 400
# The effort pysbd may spend on lists in one window, in characters read, before the window is made smaller.
_MOST_EFFORT = 1_000_000
_LEAST_WINDOW = 100

_INK = re.compile(r"\S")
# The end of a sentence in any of the scripts, where pysbd cannot be asked.
_BREAK = re.compile(r"[.!?\u2026](?=\s)|[\u3002\uff01\uff1f\u0964\u061f\u06d4\u0589\u1362\u104b]+|[\n\r]")
# What closes a quote, a bracket or, once more, the sentence, where no space is in front of it: none begins with it.
_CLOSERS = re.compile(
    r"(?<!\s)[!?\xab\xbb\u201d\u3002\u300b\u300d\u300f\u3011\uff01\uff09\uff1f\u061f\u06d4\u0964]+\s*"
)
_MARKER = re.compile(r"(?<![^\s(\u2043-])(?:\d{1,2}\.[\s)]|(?:[a-z]|[ivx]{2,5})[.)])|\d\)\s")

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
# Words, but Han characters one by one, as each is one or nearly so. The first group is all other letters.
_SCRIPT_WORD = "|".join(  # compiled when first used, as many runs see Latin letters alone
    [rf"([^\W\d_{_ANY}]+)", *(f"([{a}])" if code == "zh" else f"([{a}]+)" for code, a in SCRIPTS.items())]
)
# Marks without which a script's texts end their sentences as English does; pysbd's rules for the script then do harm:
# those for Hindi and Urdu know no full stop, those for Persian end a sentence at a colon.
_MARKS = {"hi": ("\u0964", "hi"), "fa": ("\u061f", "fa")}

_MOST = 2000  # characters looked at: enough to tell, and little to do for a book
_SCRIPTS = {
    "Chinese": SCRIPTS["zh"],
    "Japanese": SCRIPTS["ja"],
    "Korean": r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "Arabic": SCRIPTS["fa"],
    "Greek": SCRIPTS["el"],
    "Hebrew": r"\u0590-\u05ff",
}
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
_LANGUAGES: dict[str, list[str]] = {}  # of each common word
for _language, _words in _WORDS.items():
    for _word in dict.fromkeys(_words.split()):
        _LANGUAGES.setdefault(_word, []).append(_language)
_LETTER = r"[^\W\d_]"


class Sentence(NamedTuple):
    """One sentence of a text, with the white space that follows it.

    Attributes:
        text: Its characters, unaltered: `source[start:end]`.
        start: Offset of its first character.
        end: Offset behind its last one.

    Example:
        >>> text, start, end = Sentence("Hello. ", 0, 7)
        >>> end - start == len(text)
        True
    """

    text: str
    start: int
    end: int


class Splitter(Protocol):
    """Any function that splits a text into `(text, start, end)`, as `split_sentences` does.

    It must be safe to call from many threads at once. Sentences come in order and do not overlap; offsets
    slice the text that was given. A call runs to its end, whatever is closed or cancelled meanwhile.

    Example:
        >>> def halves(text, language, /):
        ...     middle = len(text) // 2
        ...     return [(text[:middle], 0, middle), (text[middle:], middle, len(text))]
        >>> splitter: Splitter = halves
        >>> splitter("ab", "en")
        [('a', 0, 1), ('b', 1, 2)]
    """

    def __call__(self, text: str, language: str, /) -> Sequence[tuple[str, int, int]]:
        """Return the sentences of the text, which is in the language (a two-letter code)."""
        ...


def languages() -> tuple[str, ...]:
    """Return the languages `split_sentences` knows, as two-letter codes in alphabetical order.

    Example:
        >>> "en" in languages()
        True
    """
    return tuple(sorted(_pysbd.load()))


def split_sentences(text: str, language: str = "en") -> list[Sentence]:
    """Split a text into sentences by pysbd's rules.

    The sentences tile the text: joined they are the text, each slices it, and each has at least one character
    that is not white space. White space belongs to the sentence in front of it (at the very beginning, to
    the first one). Up to `WINDOW` characters the sentences are pysbd's own; longer texts are split in
    overlapping windows, so that the time grows with the length only, and no other thread waits long. One thing is
    mended: in languages other than English pysbd may leave closing quotes, or the second of two marks, to the next
    sentence.

    Args:
        text: Any text of any length; it need not be valid Unicode.
        language: One of `languages()`. `ragstone.text.language_of` names one that suits the text's script.

    Returns:
        The sentences in order; none for a text that is empty or only white space.

    Raises:
        ValueError: The language is not known; the message names those that are.

    Example:
        >>> split_sentences("Dr. Who left. Did he?  Yes!")
        [Sentence(text='Dr. Who left. ', start=0, end=14), Sentence(text='Did he?  ', start=14, end=23), \
Sentence(text='Yes!', start=23, end=27)]
    """
    return list(iter_sentences(text, language))


def iter_sentences(text: str, language: str = "en") -> Iterator[Sentence]:
    """Split a text as `split_sentences` does, one window of it at a time, so that a caller may stop in between.

    Raises:
        ValueError: When first asked for a sentence: the language is not known.

    Example:
        >>> next(iter_sentences("One. Two."))
        Sentence(text='One. ', start=0, end=5)
    """
    if language not in _pysbd.load():
        raise ValueError(f"no sentence splitter for {language!r}; the languages are: {', '.join(languages())}")
    starts = _starts(text, language)
    if next(starts, None) is not None:
        for start, end in pairwise(chain((0,), starts, (len(text),))):
            yield Sentence(text[start:end], start, end)


def _starts(text: str, language: str) -> Iterator[int]:
    """Yield where sentences begin, the first at the first character that is not white space."""
    first = _INK.search(text)
    if first is None:
        return
    starts = [first.start()]
    yield starts[0]
    # Everything in front of `begin` is decided; a window shows pysbd the text from `left` on.
    left = begin = starts[0]
    while True:
        end, complete = _window_end(text, begin, _window_size(text, begin))
        # A sentence that the margin leaves undecided is seen again, whole, by the next window.
        sure = end if complete else end - min(_MARGIN, (end - begin) // 2)
        undecided = max(begin, starts[-1] + 1)
        window = [left + start for start in _window_starts(text[left:end], language)]
        decided = [start for start in window if undecided <= start <= sure]
        starts += decided
        yield from decided
        if sure == end:
            following = _INK.search(text, end)
            if following is None:
                return
            begin = following.start()
            starts.append(begin)
            yield begin
        else:
            begin = starts[-1] if starts[-1] > begin else sure
        left = _context(starts, begin, min(_CONTEXT, (end - left) // 2))


def _window_size(text: str, begin: int) -> int:
    """The length that the window from `begin` may have, given what pysbd does with lists."""
    size = WINDOW
    while size > _LEAST_WINDOW and _effort(text[begin : begin + size]) > _MOST_EFFORT:
        size //= 2
    return size


def _window_end(text: str, begin: int, size: int) -> tuple[int, bool]:
    """The end of the window from `begin`, and whether a sentence is sure to end there."""
    end = begin + size
    if end >= len(text):
        return len(text), True
    middle = begin + size // 2
    line_end = max(text.rfind("\n", middle, end), text.rfind("\r", middle, end))
    if line_end >= 0:
        return line_end + 1, True
    space = text.rfind(" ", middle, end)
    return (end if space < 0 else space), False


def _effort(window: str) -> int:
    """About the number of characters that pysbd may have to read for the lists of a window.

    It rewrites the text for every list marker and looks for further ones beyond every line. Where the marker
    is a letter, all that have the same one get a line break each time, each of which is then a line to read.
    """
    lines = 50 + window.count("\n") + window.count("\r")
    most = window.count(".") + window.count(")")
    # Few enough not to look closer.
    if (bound := most * (len(window) + 8 * most * most) * lines // 50) <= _MOST_EFFORT:
        return bound
    markers = Counter(_MARKER.findall(window))
    breaks = sum(count * count for marker, count in markers.items() if marker[0].isalpha())
    return markers.total() * (len(window) + 8 * breaks) * lines // 50


def _context(starts: list[int], begin: int, most: int) -> int:
    """The beginning of the next window, so that it has text in front of `begin`, but not too much."""
    if starts[-1] < begin:  # within a sentence that is longer than a window
        return max(starts[-1], begin - most)
    if len(starts) > 1 and begin - starts[-2] <= most:
        return starts[-2]
    return begin


# Several metrics split one sample's texts, and many samples share a document. As a window has few characters more than
# WINDOW, the process keeps at most 3 MB of ASCII, or 13 MB of any text.
@lru_cache(512)
def _window_starts(window: str, language: str) -> tuple[int, ...]:
    """Where sentences begin behind the first one of the window."""
    own = _INK.search(window)
    if own is None:
        return ()
    asked = partial(_asked_starts, window, language)
    places: Iterable[int] = asked(0, len(window)) if language != "en" else prose_starts(window, asked)
    if language != "en":
        places = [closers.end() if (closers := _CLOSERS.match(window, start)) else start for start in places]
    return tuple(sorted({start for start in places if own.start() < start < len(window)}))


def _asked_starts(window: str, language: str, begin: int, end: int) -> list[int]:
    """Where pysbd's sentences begin in a stretch of a window. It sees a character on either side, as in the window."""
    left = max(0, begin - 1)
    text = window[left : end + 1]
    try:
        places = _pysbd.align(text, _pysbd.raw_sentences(text, language))
    except Exception:  # pysbd makes regular expressions from the text: odd texts make it raise anything
        places = [ink.start() for mark in _BREAK.finditer(text) if (ink := _INK.search(text, mark.end()))]
    return [left + place for place in places]


def language_of(text: str) -> str:
    """Return the language by whose rules `split_sentences` does best on a text of this one's script.

    The script is the one that most words are written in. Languages of one script are not distinguished: Latin and
    Cyrillic letters are split as English, whatever the language, so for such texts the language is better
    named. Arabic has Persian's rules, as pysbd ends sentences at commas in Arabic.

    Returns:
        One of "en", "zh", "ja", "hi", "fa", "ur", "el", "hy", "am", "my".

    Example:
        >>> [language_of(text) for text in ("Was ist das?", "これは本です。", "这本 book 很好。")]
        ['en', 'ja', 'zh']
        >>> [language_of(text) for text in ("यह किताब है।", "ما هذا؟")]
        ['hi', 'fa']
    """
    if text.isascii() or re.search(f"[{_ANY}]", text) is None:
        return "en"
    words = dict.fromkeys(_CODES, 0)
    for word in re.finditer(_SCRIPT_WORD, text):
        words[_CODES[(word.lastindex or 1) - 1]] += 1
    if words["ja"] * 10 > words["zh"]:  # Japanese is written in both; a kana or two may be in a Chinese text
        words["ja"] += words.pop("zh")
    code = max(words, key=words.__getitem__)
    # Urdu's full stop.
    if code == "fa" and "\u06d4" in text:
        return "ur"
    mark, own = _MARKS.get(code, ("", code))
    return own if mark in text else "en"


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
            # Letters of Persian, Urdu and others in Arabic script.
            return None if most == "Arabic" and re.search("[\u0679-\u06d5]", letters) else most
    words = [word.casefold() for word in re.findall(rf"{_LETTER}(?:{_LETTER}|[\u0300-\u036f\u0900-\u0963])*", text)]
    hits: dict[str, list[str]] = {language: [] for language in _WORDS}
    weights = dict.fromkeys(_WORDS, 0.0)
    for word in words:
        having = _LANGUAGES.get(word, ())
        for language in having:
            hits[language].append(word)
            weights[language] += 1 / len(having)
    first, second = sorted(weights, key=weights.__getitem__, reverse=True)[:2]
    own = hits[first]
    plain = len(set(own)) > 1 and len(own) * 7 >= len(words) and weights[first] * 2 >= weights[second] * 3
    return first if plain else None
