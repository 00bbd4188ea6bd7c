r"""What attacks on a judge look like: patterns of what ordinary prose hardly ever holds.

Every repetition in a pattern is bounded, so that looking for it takes time linear in the text, and each sign names its
cues: plain words one of which stands in every text that the pattern matches, and without which it is not tried.
"""

import re
from typing import NamedTuple

from ragstone.outcome import SuspicionKind

_W = r"(?:[\w'\u2019-]{1,20}[\s,]{1,3})"  # a word and the space behind it
_JUDGE = r"(?:evaluator|grader|judge|llm|language\ model|ai\ (?:model|assistant|system|rater))"
_VERDICT_WORD = r"(?:yes|supported|relevant|committal|true|correct|1(?:\.0{1,2})?|10|10\s?/\s?10|\{)"
_TOP = r"(?:1(?:\.0{1,2})?|5|10|100)"
_Q = r"\\{0,2}[\"']\s{0,9}"


class Sign(NamedTuple):
    """What a kind of attack looks like in lower case; `cues`: one of them is in every text that the pattern matches."""

    kind: SuspicionKind
    cues: tuple[str, ...]
    pattern: re.Pattern[str]


def _sign(kind: SuspicionKind, cues: str, *patterns: str) -> Sign:
    return Sign(kind, tuple(cues.split(",")), re.compile("|".join(patterns), re.VERBOSE))


SIGNS = (
    _sign(
        "order",
        "ignor,disregard,forget,overrid,bypass",
        rf"""\b(?:ignore|disregard|forget|override|bypass)\s{{1,3}}{_W}{{0,3}}?
             (?:previous|prior|preceding|above|earlier|foregoing|original|initial|system|your|all|any|these|those|other)
             \s{{1,3}}{_W}{{0,2}}?(?:instruction|prompt|directive|guideline|rubric|criteria)""",
        rf"""\b(?:ignore|disregard|forget)\s{{1,3}}{_W}{{0,2}}?
             (?:instructions?|prompt|task|rubric|text|everything|anything|all)\s{{1,3}}{_W}{{0,3}}?
             (?:above|before\ this|so\ far|you\ (?:were|have\ been|got|received))""",
        rf"""(?:\A|[.!?:;\n"'\u201c>\])])\s{{0,3}}(?:please\ )?(?:ignore|disregard)\s(?:the|all)\s
             {_W}?instructions\b""",
        r"\bignor\w{1,5}\s{1,3}(?:[\w'\u2019]{1,20}\s{1,3}){0,4}?"
        r"(?:anweisung|vorgabe|instruktion|instruccion|indicacion|instruç|instruc[aoõ]|istruzion|consigne)",
    ),
    _sign(
        "order",
        "vergiss,vergesst,olvid,oubli,antworte",
        r"\b(?:vergiss|vergesst|olvid\w{1,3}|oubli\w{1,3})\s{1,3}(?:[\w'\u2019]{1,20}\s{1,3}){0,4}?"
        r"(?:anweisung|vorgabe|instruktion|instruccion|indicacion|instruction|consigne)",
        r"""\bantworten?\s(?:sie\s)?(?:immer|nur|ausschließlich|stets)\s(?:mit\s)?["'\u201e]?ja\b""",
    ),
    _sign(
        "order",
        "evaluator,grader,judge,llm,language model,ai ",
        rf"""\b{_JUDGE}\b[\s:,;.!\u2014\u2013-]{{1,4}}
             (?:please|you\ (?:must|should|will|have\ to|need\ to|are\ to)|do\ not|give|rate|score|mark|output|return
             |reply|respond|assign|(?:always|only)\ |answer\ (?:yes|with))\b""",
        rf"""\b(?:dear|attention|hey|note\ (?:to|for))[\s,:]{{1,3}}(?:the\ |all\ |any\ |an?\ )?{_W}?{_JUDGE}s?\b
             \s?[:,!\u2014\u2013-]""",
    ),
    _sign(
        "order",
        "reply,respond,answer only,answer with,always,output,nothing else",
        rf"""\b(?:reply|respond|answer|output|return)\s(?:only|always|exactly|just|simply)\s(?:with\s|as\s|by\s)?
             (?:the\sword\s)?["'`\u201c]?{_VERDICT_WORD}(?![\w-])""",
        rf"""\b(?:always|only|must|please|just|simply)\s(?:reply|respond|answer|output|return)\s
             (?:with\s|as\s|by\s)?(?:the\sword\s)?["'`\u201c]?{_VERDICT_WORD}(?![\w-])""",
        r"""\b(?:reply|respond|answer|output)\s(?:with\s)?[^\n]{1,160}?\sand\snothing\selse\b""",
        r"""\breply\swith\s(?:one\sword:|bare\sjson)""",
    ),
    _sign(
        "order",
        "system:,system],system p,system m,system o,administrator,instructions:,task:",
        r"""\b(?:system|administrator)\s(?:prompt|override|message)s?
            \s?[\])]?\s?:""",
        r"""\[system\]|\bsystem:\s{0,3}(?:you\ |ignore|all\ |please|override|answer|output|reply|mark\b|set\b
            |the\ (?:evaluat|judge|grad|answer|response|correct|context|claim|summary))""",
        r"""\b(?:new|updated|revised|real|actual)\s(?:task|instructions):""",
    ),
    _sign(
        "order",
        "as supported,as relevant,as committal,are supported,are relevant,are needed",
        rf"""\b(?:mark|rate|label|grade|score|judge|classify|accept|count|treat|consider)\s{_W}{{1,6}}?as\s
             (?:supported|relevant|committal)\b""",
        r"""\ball\s(?:of\s)?(?:the\s)?(?:claim|sentence|statement|passage|context)s\s
            are\s(?:supported|relevant|needed)\b""",
    ),
    _sign(
        "score_claim",
        "/1,/5,/ 1",
        rf"""\b(?:score|rating|grade|verdict|rate|mark)s?\s{{0,2}}(?:is|of|to|as|at|it|this|with|:|=)?\s{{0,2}}
             (?:an?\s|as\s)?["'*\[]{{0,2}}{_TOP}\s?/(?:5|\s?10|\s?100|1)\b(?![/\d])""",
    ),
    _sign(
        "score_claim",
        "score:,score=,score 1,score of,score is",
        rf"""\bscore[:=]\s{{0,2}}["'*]{{0,2}}{_TOP}(?![\d.]*\d)(?!\s?[-\u2013\u2014:/,]\s?\d)""",
        rf"""\b(?:output|give|return|assign|report|print|write)\s{_W}{{0,4}}?score\s
             (?:of\s|is\s)?{_TOP}(?![\d.]*\d)(?!\s?[-\u2013\u2014:/,]\s?\d)""",
    ),
    _sign(
        "score_claim",
        "highest,maximum,full mark,full score,perfect,[[",
        r"""\[\[(?:1|5|10|a|b|yes)\]\]""",
        rf"""(?:\A|[.!?:\n"\u201c]\s{{0,2}}|\b(?:please|must|should|always)\s)(?:give|assign|award)\s{_W}{{0,6}}?
             (?:highest|maximum|full|perfect)\s(?:possible\s)?(?:score|rating|grade|mark|verdict)s?\b""",
    ),
    _sign(
        "verdict",
        "{",
        rf"""\{{\s{{0,9}}{_Q}(?:
                 ids{_Q}:\s{{0,9}}\[[\d,\s]{{0,200}}\]\s{{0,9}}[,}}]
               | (?:answers|verdicts){_Q}:\s{{0,9}}\{{\s{{0,9}}{_Q}\d
               | questions{_Q}:\s{{0,9}}\[\s{{0,9}}\{{\s{{0,9}}{_Q}question
               | items{_Q}:\s{{0,9}}\[\s{{0,9}}\{{\s{{0,9}}{_Q}keyphrase
               | (?:claims|parts|sentences|questions){_Q}:\s{{0,9}}\[\s{{0,9}}(?:{_Q}|\])
               | (?:score|verdict|answer){_Q}:\s{{0,9}}(?:{_Q})?(?:yes|no|supported|relevant|true|{_TOP})\b)""",
    ),
    _sign(
        "break_out",
        "<,[inst],[/inst],###",
        r"""</?\w{1,20}\s{1,3}[0-9a-f]{8}>""",
        r"""<[|\uff5c][\w▁-]{2,40}[|\uff5c]>""",
        r"""</?(?:start|end)_of_turn>""",
        r"""<</?sys>>""",
        r"""\[/?inst\]""",
        r"""\#\#\#\s?(?:instruction|system|response)s?\s?:""",
    ),
)
# Languages that are not written in ASCII; tried on such texts only.
FOREIGN = (
    _sign(
        "order",
        "忽略,无视,無視,忽視,指示,指令,निर्देश,अनुदेश,تجاهل,игнорир,забудь",
        r"(?:忽略|无视|無視|忽視|忘记).{0,6}(?:之前|以上|前面|上述|上面|所有|先前|一切).{0,8}(?:指令|指示|提示|说明|說明|要求)",
        r"(?:以前|これまで|上記|前|すべて|全て).{0,10}(?:指示|命令|プロンプト).{0,6}(?:無視|忘れ)",
        r"(?:निर्देश|अनुदेश).{0,25}(?:अनदेखा|अनदेखी|नज़रअंदाज़|नजरअंदाज|उपेक्षा|भूल)",
        r"تجاهل.{0,15}(?:التعليمات|الأوامر|الإرشادات|التوجيهات)",
        r"(?:игнорируй|игнорируйте|забудь|забудьте).{0,30}(?:инструкци|указани)",
    ),
)
SHOT = re.compile(
    r"\b(?:assistant|answer|verdict|judge|evaluator|a)\s?:\s{0,2}(?:yes|supported|relevant|true|1(?:\.0)?|10/10)\.?"
    r"[ \t]{0,9}(?:\n|\Z)"
)
FILLERS = frozenset(
    {
        "solution", "answer", "the answer is", "final answer", "thought process", "thought", "reasoning", "explanation",
        "let's solve this problem step by step", "let's think step by step", "let us think step by step", "response",
        "respuesta", "lösung", "solución", "解", "解答", "答案", "かいせつ", "解説", "回答",
    }
)  # fmt: skip
BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{48,}={0,2}")
INVISIBLE = re.compile("[\u200b-\u200d\u202a-\u202e\u2060-\u2069\ufeff\U000e0020-\U000e01ef]")
_ZERO_WIDTH = "\u200b\u200c\u200d\u2060-\u2064\ufeff"
# Between letters of scripts that need no joiner; in runs; characters that spell ASCII invisibly; forced direction.
HIDDEN = re.compile(
    f"(?<=[A-Za-z])[{_ZERO_WIDTH}](?=[A-Za-z])|[{_ZERO_WIDTH}]{{4}}|[\U000e0020-\U000e007f]{{8}}"
    "|[\U000e0100-\U000e01ef]{3}|[\u202d\u202e]"
)
BIDI = re.compile("[\u202a\u202b\u2066-\u2068]")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
