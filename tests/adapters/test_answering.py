"""What the answering call read: which call said an answer, which prompts lie behind it, and what stands in them."""

import html
import json
import random
from collections.abc import Sequence

import pytest

from ragstone.adapters.answering import ModelCall, texts_in, texts_read
from ragstone.adapters.narrowing import narrowed, submit, with_answer
from ragstone.adapters.runs import Draft, Searched
from ragstone.sample import Sample


def about(topic: str, words: int = 60) -> str:
    return f"A text about {topic}, as a handbook has it. " + " ".join(f"{topic}{number}" for number in range(words))


A, B, C, D, E = TEXTS = [about(topic) for topic in ("rivers", "towns", "hills", "lakes", "roads")]
ANSWER = "The river is the longest of its country."
SHORT = ["Rivers flow.", "Towns grow.", "France"]
CHINESE = ["巴黎是法国的首都和最大的城市，位于塞纳河畔。", "柏林是德国的首都。", "罗马是意大利的首都，历史悠久的城市。"]
HEADER = "Title: the handbook of the whole company. Owner: its department in Berlin. Confidential: no. Version: 7.\n"
HEADED = [HEADER + text for text in TEXTS]
MARKED = "He said: <b>Paris & Île-de-France</b>\n\t— café №5 \\ 7.\nThe second line of that text."
LINES = [
    f"{topic}({topic}, {number})"
    for number, topic in enumerate(["parse", "load", "save", "merge", "split", "close", "open"])
]
FIELDS = [
    json.dumps({"title": title, "price": number, "about": f"{title} {number} " * 9})
    for number, title in enumerate(
        ("Red running shoes for grown men", "A very long title of a blue shoe for children", "Hat")
    )
]
LONG = [" ".join(f"{a}{number}" for number in range(2_000)) for a in "xyz"]


def numbered(text: str, each: int) -> str:
    words = text.split(" ")
    return " ".join(f"[{at}] {' '.join(words[at : at + each])}" for at in range(0, len(words), each))


PROMPTS: dict[str, tuple[Sequence[str], str, Sequence[str] | None]] = {
    "two of five": (TEXTS, f"{A}\n\n{C}\nWhich?", [A, C]),
    "all": (TEXTS, "\n".join(TEXTS), TEXTS),
    "none": (TEXTS, "Which is the longest?", None),
    "in other letters, line by line": (TEXTS, A.upper().replace(" ", "\n> "), [A]),
    "as JSON": ([MARKED, *TEXTS], json.dumps([{"page_content": MARKED}, {"page_content": B}]), [MARKED, B]),
    "as JSON in JSON": ([MARKED, *TEXTS], json.dumps(json.dumps([MARKED, B])), [MARKED, B]),
    "as Python writes it": ([MARKED, *TEXTS], repr([{"text": MARKED}, {"text": B}]), [MARKED, B]),
    "as XML": ([MARKED, *TEXTS], f"<doc n='1'>{html.escape(MARKED)}</doc><doc>{B}</doc>", [MARKED, B]),
    "a short one as XML": (
        ["Profits & losses of departments", B, C],
        html.escape("Profits & losses of departments") + B,
        ["Profits & losses of departments", B],
    ),
    "a short one without accents": (
        ["À Orléans, le café est né", B, C],
        "A Orleans, le cafe est ne" + B,
        ["À Orléans, le café est né", B],
    ),
    "without its tags": ([MARKED, *TEXTS], MARKED.replace("<b>", "").replace("</b>", "") + B, [MARKED, B]),
    "with tags around its words": (TEXTS, B.replace("towns", "<em>towns</em>"), [B]),
    "Chinese, as JSON in ASCII": (CHINESE, json.dumps(CHINESE[:2]), CHINESE[:2]),
    "cut": (TEXTS, f"{A[:120]}...\n{B[:120]}...", [A, B]),
    "a piece out of the middle": (LONG, f"...{LONG[1][4_321:4_421]}...", LONG[1:2]),
    "a field of each": (
        FIELDS,
        "- Red running shoes for grown men: 30\n- " + json.loads(FIELDS[1])["title"],
        FIELDS[:2],
    ),
    "sentences in another order": (LONG, f"{LONG[0][500:]}\n{LONG[0][:500]}", LONG[:1]),
    "numbers between its words, beside one that is whole": (TEXTS, numbered(A, 3) + B, [A, B]),
    "lines with numbers, beside one that is whole": (
        ["\n".join(LINES), B, C],
        "\n".join(f"{number:04} {line}" for number, line in enumerate(LINES, 1)) + B,
        ["\n".join(LINES), B],
    ),
    "one that has another's header": (HEADED, "\n\n".join(HEADED[:2]), HEADED[:2]),
    "one that overlaps with another": (["a " + A[:400], A[200:], B], "a " + A[:400], ["a " + A[:400]]),
    "one that another overlaps, but for a word": (
        ["a " + A[:120], A[60:130], B],
        "a " + A[:130],
        ["a " + A[:120], A[60:130]],
    ),
    "one that is part of another": ([A + B, B, C], A + B, [A + B]),
    "one that is part of another, by itself too": ([A + B, B, C], f"{A + B}\n{B}", [A + B, B]),
    "short ones": (SHORT, "Rivers flow. Towns grow.", SHORT[:2]),
    "a short one by chance": ([*TEXTS, "France"], "What is the capital of France?", None),
    "short ones beside a long one": ([*TEXTS, "France"], f"{A} France", [A, "France"]),
    "empty ones": (["", A, B], A, [A]),
    "the same twice": ([A, A, B], A, [A]),
    "none found": ([], A, []),
}


@pytest.mark.parametrize(("found", "prompt", "read"), PROMPTS.values(), ids=PROMPTS)
def test_a_text_was_read_if_it_stands_in_the_prompt(
    found: Sequence[str], prompt: str, read: Sequence[str] | None
) -> None:
    assert texts_read(found, [ModelCall([prompt], [ANSWER])], ANSWER) == read


def said(*calls: tuple[Sequence[str], object]) -> list[ModelCall]:
    return [ModelCall(prompt, [out if isinstance(out, str) else json.dumps(out)]) for prompt, out in calls]


TWO = said(([*TEXTS], "relevant"), ([A, C], ANSWER))
CALLS: dict[str, tuple[str, Sequence[ModelCall], Sequence[str] | None]] = {
    "its output": (ANSWER, TWO, [A, C]),
    "in other letters": (ANSWER.upper() + "!", TWO, [A, C]),
    "with more around it": (f"Here it is:\n{ANSWER}\n\nSources: [1], [2]", TWO, [A, C]),
    "the end of its output": (ANSWER, said((TEXTS, "no"), ([B], f"Thought: I can answer.\nAnswer: {ANSWER}")), [B]),
    "a part of its output": (ANSWER, said(([B], f"{ANSWER} Do you want to know more?")), [B]),
    "a value of its output": (ANSWER, said((TEXTS, "no"), ([B], {"answer": ANSWER, "sources": [1]})), [B]),
    "a value in a fence": (
        "Paris, in France",
        said((TEXTS, "no"), ([B], '```json\n{"a": ["Paris, in France"], "b": 2}\n```')),
        [B],
    ),
    "a tag's text": ("Paris", said((TEXTS, "no"), ([B], "<a>So.</a> <b>Paris</b>")), [B]),
    "a number among values": ("123456", said((TEXTS, "relevant"), ([B], {"number": 123_456, "unit": "m"})), [B]),
    "a line of its output": ("Paris", said((TEXTS, "relevant"), ([B], "Paris\nThat is well known.")), [B]),
    "one of very many calls": (ANSWER, said(*[([A], "no")] * 1_000, ([B], ANSWER)), None),
    "a short one": ("Paris.", said((TEXTS, "relevant"), ([B], "paris")), [B]),
    "a short one that several say": ("Paris", said(([A], "Paris"), ([B], "It is Paris"), ([C], "Parish")), [A, B]),
    "a short one that none ends with": ("Paris", said(([A], "Paris, score 10"), ([B], "Rome, score 90")), None),
    "one that a grader says too": ("No", said(([A], "no"), ([B], "No.")), None),
    "the last of several": (ANSWER, said((TEXTS, ANSWER), ([B], ANSWER)), [B]),
    "nobody's": ("I cannot answer that, sorry about it.", TWO, None),
    "a question that another one wrote": (
        f"{about('x')} towns in the whole country?",
        said(([A], "towns in the whole country")),
        None,
    ),
    "two calls'": (
        "First: the town of Aville in the north is meant. Second: the town of Bville in the south is.",
        said(([A], "the town of Aville in the north is meant."), ([B], "the town of Bville in the south is.")),
        [A, B],
    ),
    "two calls', of which one is short": (
        "1. Yes, it is.\n2. The town of Bville in the south is meant.",
        said(([A], "Yes, it is."), ([B], "The town of Bville in the south is meant."), ([C], "Rivers are long.")),
        [A, B],
    ),
    "none": ("", TWO, None),
    "of no letters": ("?!", said(([A], "?!")), None),
    "of a call that has not ended": (ANSWER, [ModelCall([A])], None),
    "without calls": (ANSWER, [], None),
    # The prompts behind it.
    "map and reduce": (
        ANSWER,
        said(
            ([A], "A summary of rivers with many words."),
            ([B], "Not found."),
            (["A summary of rivers with many words. Not found."], ANSWER),
        ),
        [A, B],
    ),
    "refined": (
        "Paris, in France, it is.",
        said(([A], "Paris."), (["Paris. " + B], "Paris, in France, it is.")),
        [A, B],
    ),
    "what a sub-agent says, however short": (
        ANSWER,
        said(
            ([A], "No"),
            (["Who?", "No."], ANSWER),
            ([B], "yes"),
        ),
        [A],
    ),
    "a grader's word is no draft": (
        ANSWER,
        said(([A], "yes"), ([B], "no"), (["Say yes or no, and why: " + C], ANSWER)),
        [C],
    ),
    "a line of an output": (
        ANSWER,
        said(([A], "rating: 7\nRivers are long in this part."), ([f"Rivers are long in this part.{B}"], ANSWER)),
        [A, B],
    ),
    "what stands behind a label": (
        ANSWER,
        said(([A], "MISSING: what about the lakes and hills?"), ([B, "What about the lakes and hills?"], ANSWER)),
        [A, B],
    ),
    "a number of a step with several": (
        ANSWER,
        said(
            (["Say how many.", A], "twenty"),
            (["Say how many.", B], "7"),
            (["Rate it.", C], "7"),
            (["twenty, 7"], ANSWER),
        ),
        [A, B],
    ),
    "round in a circle": (
        ANSWER,
        said(([A + ANSWER], ANSWER), ([f"{ANSWER} and {B}"], "An earlier one of the same length.")),
        [A],
    ),
}


@pytest.mark.parametrize(("answer", "calls", "read"), CALLS.values(), ids=CALLS)
def test_the_call_that_said_the_answer_counts_and_those_whose_outputs_it_was_given(
    answer: str, calls: Sequence[ModelCall], read: Sequence[str] | None
) -> None:
    assert texts_read(TEXTS, calls, answer) == read


def test_what_stands_in_the_question_alone_is_no_sign() -> None:
    """A long question's words are no part of a text that repeats it."""
    faq = [f"{about('trains')}? {text}" for text in TEXTS]
    asked = f"{about('trains')}?"
    calls = said(([asked, A], ANSWER))
    assert texts_read([asked, *TEXTS[1:]], said(([asked], ANSWER)), ANSWER, asked) is None
    assert texts_read([A, faq[1]], calls, ANSWER, asked) == [A]


PASSED_ON: dict[str, tuple[Sequence[str], str, Sequence[str] | None]] = {
    "one from the web": ([A, E], f"{A} {E}", [A, E]),
    "one in place of all": ([E], E, [E]),
    "one that was not read": ([E], A, [A]),
    "cut ones": ([A[:150], B[:150]], A[:150], [A]),
    "ones with a header": (HEADED[:4], f"{HEADED[0]}{HEADED[1]}", [A, B]),
    "all as one": (["\n".join(TEXTS[:4])], "\n".join(TEXTS[:4]), TEXTS[:4]),
}


@pytest.mark.parametrize(("passed_on", "prompt", "read"), PASSED_ON.values(), ids=PASSED_ON)
def test_documents_that_steps_returned_count_where_they_are_none_of_those_found(
    passed_on: Sequence[str], prompt: str, read: Sequence[str] | None
) -> None:
    assert texts_read(TEXTS[:4], said(([prompt], ANSWER)), ANSWER, passed_on=passed_on) == read


def plainly(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def longest_shared(one: str, other: str) -> int:
    best, row = 0, [0] * (len(other) + 1)
    for letter in one:
        new = [0]
        for at, each in enumerate(other):
            new.append(row[at] + 1 if letter == each else 0)
        best, row = max(best, *new), new
    return best


@pytest.mark.parametrize("seed", range(8))
def test_a_text_stands_in_a_prompt_by_a_stretch_of_it_as_a_plain_reference_says(seed: int) -> None:
    rng = random.Random(seed)
    # Without words or sentences, by which a text may stand there, too.
    texts = ["".join(rng.choices("aeioubcdfgé", k=rng.randint(20, 300))) for _ in range(4)]
    sure = " ".join(rng.choices("12345", k=60))
    pieces = [text[(at := rng.randrange(len(text))) : at + rng.randint(10, 200)] for text in texts]
    prompt = " ".join([sure, *pieces])
    read = texts_read([sure, *texts], [ModelCall([prompt], [ANSWER])], ANSWER) or []
    for text in texts:
        shared = longest_shared(plainly(text), plainly(prompt))
        if plainly(text) in plainly(prompt) or shared >= 70:
            assert text in read
        elif shared < 40:
            assert text not in read


@pytest.mark.parametrize(
    "text",
    [
        "\\" * 50_000,
        "\\u" * 20_000,
        "\0" * 50_000,
        "\ud83d" * 9_000,
        "&a" * 20_000,
        "&#" + "9" * 9_000,
        "<" * 50_000,
        "[" * 50_000 + "]" * 50_000,
        "a " * 9_000,
        "a\n" * 9_000,
    ],
)
def test_texts_of_whatever_kind_raise_nothing(text: str) -> None:
    pieces = [text[at : at + 1_000] + str(at) for at in range(0, len(text), 5_000)]
    for answer in (text, ANSWER, "Paris"):
        texts_read(pieces, [ModelCall([text], [text]), ModelCall([text], ["Paris", ANSWER])], answer, text, pieces)


def test_texts_of_blocks_whatever_their_form() -> None:
    content = ["Why?", {"type": "document", "source": {"data": A}}, Sample(response=B), (C,), None, 7]
    assert {"Why?", A, B, C} <= {*texts_in(content)}
    endless: list[object] = ["Here."]
    endless.append(endless)
    assert {*texts_in(endless)} == {"Here."}


# --- drafts -----------------------------------------------------------------------------------------


def draft(calls: Sequence[ModelCall], *, passed_on: Sequence[str] = (), compared: Sequence[str] = ()) -> Draft:
    sample = Sample(user_input="Which?", response=ANSWER, retrieved_contexts=TEXTS)
    return Draft(sample, {"retrieved_contexts": "searches (5)"}, searched=Searched(TEXTS, calls, passed_on, compared))


def test_a_draft_has_what_was_read_and_says_how_much_of_it() -> None:
    web = about("trains")
    read = narrowed(draft(said(([A, C, web], ANSWER)), passed_on=[A, web]))
    assert read.sample.retrieved_contexts == (A, C, web)
    assert read.read_from == {"retrieved_contexts": "2 of 5 that searches returned, 1 that steps passed on"}
    unknown = narrowed(draft([]))
    assert unknown.sample.retrieved_contexts == tuple(TEXTS)
    assert unknown.read_from == {"retrieved_contexts": "searches (5)"}
    assert narrowed(Draft(Sample(response=ANSWER))).sample == Sample(response=ANSWER)
    bare = [about(f"{number}th") for number in range(5)]
    assert narrowed(draft(said(([bare[3]], ANSWER)), compared=bare)).sample.retrieved_contexts == (D,)


def test_a_streamed_answer_was_said_by_the_call_that_had_said_nothing_yet() -> None:
    calls = [*said((TEXTS, "A plan of many words, first of all.")), ModelCall([B])]
    assert narrowed(with_answer(draft(calls), ANSWER)).sample.retrieved_contexts == (B,)
    assert with_answer(Draft(Sample()), ANSWER).sample.response == ANSWER


class Waiting:
    """A monitor that runs what it is given when it is told to."""

    def __init__(self, *, takes: bool) -> None:
        self.samples: list[Sample] = []
        self.steps: list[object] = []
        self.takes = takes

    def submit(self, sample: Sample) -> None:
        self.samples.append(sample)

    def later(self, step: object, *, size: int) -> bool:
        assert size > sum(map(len, TEXTS))
        self.steps += [step] if self.takes else []
        return self.takes


class Plain:
    """A monitor that has no thread for it."""

    submit = Waiting.submit

    def __init__(self) -> None:
        self.samples: list[Sample] = []


def test_a_sample_is_narrowed_on_the_monitors_thread_and_stays_whole_where_too_much_waits() -> None:
    read = draft(said(([A], ANSWER)))
    plain, waiting, full = Plain(), Waiting(takes=True), Waiting(takes=False)
    for monitor in (plain, waiting, full):
        submit(monitor, read)
    assert waiting.samples == []
    for step in waiting.steps:
        step()  # type: ignore[operator]
    assert [len(each.samples[0].retrieved_contexts) for each in (plain, waiting, full)] == [1, 1, 5]
    submit(waiting, draft([]))
    assert waiting.samples[1].retrieved_contexts == tuple(TEXTS)
