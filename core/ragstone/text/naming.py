"""What a text's language is called, for a judge that is to write in it: told by script and common words."""
# ruff: noqa: RUF001 - the words are in their own letters

import re
from collections import Counter
from functools import cache

from ragstone.text.scripts import SCRIPTS

_MOST = 2000  # characters looked at: enough to tell, and little to do for a book

# Scripts in which one language is written, or all but one of few readers.
_BY_SCRIPT = {
    "Chinese": SCRIPTS["zh"],
    "Japanese": SCRIPTS["ja"],
    "Korean": r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "Greek": SCRIPTS["el"],
    "Hebrew": r"\u0590-\u05ff",
    "Thai": r"\u0e00-\u0e7f",
    "Bengali": r"\u0980-\u09ff",
    "Gujarati": r"\u0a80-\u0aff",
    "Tamil": r"\u0b80-\u0bff",
    "Telugu": r"\u0c00-\u0c7f",
    "Kannada": r"\u0c80-\u0cff",
    "Malayalam": r"\u0d00-\u0d7f",
    "Georgian": r"\u10a0-\u10ff",
    "Armenian": SCRIPTS["hy"],
}
# Persian and Urdu have letters that Arabic has not; the letters of their neighbours (Pashto, Kurdish) say neither.
_ARABIC = r"[\u0600-\u06ff\ufb50-\ufdff\ufe70-\ufefc]"
_PERSIAN = r"[\u067e\u0686\u0698\u06a9\u06af\u06cc]"
_URDU = r"[\u0679\u0688\u0691\u06ba\u06be\u06c1\u06d2]"
_NEIGHBOURS = r"[\u067c\u0681\u0685\u0689\u0693\u0695\u0696\u069a\u06b5\u06c6\u06ce\u06d0]"
# Languages that share a script with others: common words of more than one letter, each weighed less the more of the
# languages have it.
_BY_WORDS = {
    "English": """the of and in is are was were be been it its at on for to that this these does did what when where
        who how which can should there from with by have has had an not you your they their he she his her or but as
        we if will would no yes about after all also any between during first into made many more most much only
        other over said some such than then through two under until used while may one""",
    "German": """der die das den dem des ein eine einen einem einer und im ist sind war wird werden wurde wurden es
        am um auf für zu zum zur dass wie was wann wo wer welche von vom mit bei nicht ich sie er auch sich aus nach
        über aber oder kann hat haben nur noch als ja nein leider ihr ihre seine sein diese dieser dieses bis unter
        vor mehr viele alle etwa gibt liegt steht wenn durch unser kein keine muss soll""",
    "French": """le la les un une des du de et est sont était ont été il elle en au aux dans sur pour par que qui
        quoi où quand comment ce cette ces ne pas plus avec je vous nous ils son sa ses se qu mais ou oui peut
        peuvent être entre sans tous aussi leur leurs si très fait deux""",
    "Spanish": """el la los las un una unos de del en es son era fue ha han se su sus al por para que qué cuándo
        dónde quién cómo cuál con no lo está están hay más como pero sí este esta desde sobre muy yo usted cuando
        donde quien entre hasta sin ser puede pueden también todos cada años según tiene tienen sólo porque nos les""",
    "Italian": """il lo la gli le un una uno di del della dei delle dell sono era ha hanno al alla ai nel nella in
        per che chi cosa quando dove come con non si da dal dalla su sul anche più ma questo questa io ed sì""",
    "Portuguese": """os as um uma de do da dos das em no na nos nas são foi era tem têm ao por para que quem quando
        onde como com não se mais mas este esta isso ou seu sua pelo pela você sim muito também""",
    "Dutch": """de het een en van in is zijn was waren wordt worden werd op te voor dat die dit wat wanneer waar wie
        hoe welke met niet ik je hij zij ook aan bij naar om er maar of kan heeft hebben nog als uit door ja nee""",
    "Swedish": """och att det som en ett på är av för med den till inte har de om var från vad när vem hur vilka kan
        jag du han hon eller men så också finns blev blir skulle där ja nej""",
    "Danish": """og at det som en et på er af for med den til ikke har de om var fra hvad hvornår hvor hvem hvordan
        kan jeg du han hun eller men så også blev bliver skulle der ja nej""",
    "Norwegian": """og at det som en et på er av for med den til ikke har de om var fra hva når hvor hvem hvordan kan
        jeg du han hun eller men så også ble blir skulle der ja nei""",
    "Finnish": """ja on ei se että oli ovat hän mutta myös tai kun kuin joka jotka mitä missä milloin kuka miten niin
        sen ole voi tämä nyt olla vain sekä kanssa""",
    "Polish": """na do się nie jest są był była było to że co kiedy gdzie kto jak po od za przez dla ale tym który
        która które oraz ma lub tego tak ze""",
    "Czech": """na se je jsou byl byla bylo to že co kdy kde kdo jak po od za pro ale který která které nebo do ne
        ano jako jeho také má by""",
    "Hungarian": """az és hogy nem is egy van volt ez mi mit mikor hol ki hogyan de vagy meg el csak már még mint
        amely aki ha igen vannak lehet szerint""",
    "Romanian": """și în de la cu pe un este sunt era fost nu că ce când unde cine cum din pentru care mai sau dar se
        să al ale lui da prin""",
    "Turkish": """ve bir bu da de için ile ne kim nerede nasıl hangi mi mı değil çok daha olan olarak var yok gibi
        ama veya ise en evet hayır kadar sonra""",
    "Indonesian": """dan yang di ke dari untuk dengan ini itu adalah tidak pada dalam akan apa siapa kapan bagaimana
        oleh juga atau karena saya anda bisa ada telah sebagai lebih ya""",
    "Vietnamese": """là và của có không được trong một những các cho với này đó người đã khi ở gì ai nào từ đến tại
        như hay bao nhiêu cũng vì""",
    "Afrikaans": """die van het nie is en in om te wat wie waar wanneer hoe dat dit vir met aan op deur as maar of
        word was sal kan jy ek hy sy ons ook nog by uit ’n hierdie moet""",
    "Catalan": """els les uns unes dels són amb per què quan on qui com no és està aquest aquesta hi ha han va pot
        més però també molt amb sense seu seva és ser sobre des fins al la el de un una""",
    "Macedonian": """и во не на што е ова како тој таа тие со по од за но или беше се каде кога кој која кои исто го
        да ќе при до нема има може сите""",
    "Serbian": """и у не на што је ово како он она они са по из од за али или био била било су где када ко који која
        које такође их да ће при до нема има може није""",
    "Russian": """и в не на что это как он она они с по из к от для о но или был была было были есть где когда кто
        который которая которые также его их я вы мы за при до у же нет да""",
    "Ukrainian": """і в не на що це як він вона вони з по із до від для про але або був була було були є де коли хто
        який яка які також його їх я ви ми за при у й та ні так""",
    "Bulgarian": """и в не на че това как той тя те с по от за но или беше са е къде кога кой който която които също
        го се да ще при до у няма има""",
    "Hindi": """है हैं में के की का को से और पर यह वह ने था थे थी नहीं क्या कब कहाँ कौन कैसे कि एक भी हो या लिए कर इस""",
    "Marathi": """आहे आहेत आणि च्या ची चा चे मध्ये हे हा ही ते तो ती नाही काय कधी कुठे कोण कसे की एक होते होता होती
        किंवा साठी""",
    "Nepali": """छ छन् र मा को का की ले लाई यो त्यो हो थियो थिए छैन होइन के कहिले कहाँ कसरी पनि एक वा लागि गर्न""",
}
_WORD = r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0900-\u0963])*"
_LETTER = r"[^\W\d_]"


def language_name(text: str) -> str | None:
    """Return the English name of the language that a text is written in, where its beginning says so plainly.

    Plainly: more than half of its letters are of a script that belongs to one language (kana beside Han characters
    make Japanese; Arabic, Persian and Urdu have letters of their own); or two different common words of a language
    are in it, at least every seventh of its words is one, and they outweigh those of any other language by half.

    Returns:
        A name such as "German", or None: too short, mixed, or a language that is not known here.

    Example:
        >>> [language_name(text) for text in ("Das Museum ist am Sonntag auf.", "これは本です。", "Oslo.")]
        ['German', 'Japanese', None]
    """
    text = text[:_MOST]
    by_script = None if text.isascii() else _by_script("".join(re.findall(_LETTER, text)))
    return by_script or _by_words([word.casefold() for word in re.findall(_WORD, text)])


def _by_script(letters: str) -> str | None:
    if len(re.findall(_ARABIC, letters)) * 2 > len(letters):
        if re.search(_NEIGHBOURS, letters):
            return None
        if len(re.findall(_URDU, letters)) > 1:
            return "Urdu"
        return "Persian" if len(re.findall(_PERSIAN, letters)) > 1 else "Arabic"
    of = {language: len(re.findall(f"[{script}]", letters)) for language, script in _BY_SCRIPT.items()}
    if of["Japanese"] * 10 > of["Chinese"]:  # a kana or two may be in a Chinese text
        of["Japanese"] += of.pop("Chinese")
    most = max(of, key=of.__getitem__)
    return most if of[most] * 2 > len(letters) else None


def _by_words(words: list[str]) -> str | None:
    commons, shared = _common_words()
    found = {language: [word for word in words if word in common] for language, common in commons.items()}
    weights = {language: sum(1 / shared[word] for word in hits) for language, hits in found.items()}
    first, second = sorted(weights, key=weights.__getitem__, reverse=True)[:2]
    common = found[first]
    plain = len(set(common)) > 1 and len(common) * 7 >= len(words) and weights[first] * 2 >= weights[second] * 3
    return first if plain else None


@cache
def _common_words() -> tuple[dict[str, frozenset[str]], Counter[str]]:
    """Return the common words of each language, and how many languages have each."""
    commons = {language: frozenset(words.split()) for language, words in _BY_WORDS.items()}
    return commons, Counter(word for words in commons.values() for word in words)
