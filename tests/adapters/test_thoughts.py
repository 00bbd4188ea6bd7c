"""Replies of reasoning models: what stands before the answer is no part of it, and nothing ambiguous is read."""

import json

import pytest

from ragstone import ContextRelevancy, LLMReply, LLMRequest, Sample, Score
from ragstone.adapters.chat_models import read_reply
from ragstone.judging.reply import bare_answer
from ragstone.testing import FakeLLM

ONE, TWO = '{"ids": [1]}', '{"ids": [2]}'
YES_NO = ("yes", "no")
CHOICE = LLMRequest("demo.ask", "", "", {}, choices=YES_NO)
FINAL = "<|start|>assistant<|channel|>final<|message|>"
HARMONY = f"<|channel|>analysis<|message|>Is it {TWO}?<|end|>{FINAL}"
QUOTING = json.dumps({"sentences": ['It says </think>{"ids": []} and <think>.']})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Let me see: first </think>\n\n", ""),
        (f"<think>\nIs it {TWO}?\n</think>\n", ""),
        ("Hm.</think>Or rather</think>", ""),
        ("[THINK]Hm.[/THINK]", ""),
        (HARMONY, "<|return|>"),
        ("<|channel|>final <|constrain|>json<|message|>", "<|end|>"),
        ("\ufeff", ""),
        ("<think>Hm.</think>\n```json\n", "\n```"),
    ],
)
def test_what_stands_before_the_answer_is_no_part_of_it(before, after):
    assert bare_answer(f"{before}{ONE}{after}")[0] == ONE
    assert bare_answer(f"{before}Yes!{after}", YES_NO)[0] == "yes"
    assert bare_answer(f"{before}{QUOTING}{after}")[0] == QUOTING
    reply = read_reply(f"{before}{ONE}{after}", LLMRequest("demo.ask", "", "", {}))
    assert reply.text == ONE


@pytest.mark.parametrize(
    "text",
    [
        f"{ONE}</think>",
        f"<think>{ONE}</think>I mean the first.",
        f"<think>{ONE}",
        f"Hm.</think>{ONE}<think>{TWO}",
        f"{ONE}<think>Or?</think>{TWO}",
        f"Hm.</think>{ONE}</think>{TWO}",
        f"{HARMONY}{ONE}<|end|>{FINAL}{TWO}<|return|>",
        f"<|channel|>analysis<|message|>{ONE}<|end|>",
        f"Hm.</think>Here it is: {ONE}",
        f'{{"sentences": ["It says </think>{ONE}',  # cut off within a quotation of what it read
        f'It says "</think>{ONE}".',
    ],
)
def test_what_is_ambiguous_is_not_read(text):
    answer, _ = bare_answer(text)
    with pytest.raises(ValueError, match=r"Expecting|Extra data|Unterminated|control"):
        json.loads(answer)
    words = text.replace(ONE, "yes").replace(TWO, "no")
    assert bare_answer(words, YES_NO)[0] not in YES_NO


@pytest.mark.parametrize(
    "text",
    ["</think>" * 100_000, '{"</think>' * 100_000, '</think>"' * 100_000, "<think>" + "<|end|>" * 100_000 + "<think>"],
)
def test_endless_marks_are_read_in_linear_time(text):
    assert bare_answer(text)[0] in (text, "", '"')


SAMPLE = Sample(user_input="Who wrote Emma?", retrieved_contexts=["Jane Austen wrote Emma. It rains."])


def test_every_adapter_may_hand_over_the_thoughts():
    together = ContextRelevancy(llm=FakeLLM(f"Is it {TWO}?</think>\n\n{ONE}")).score(SAMPLE)
    assert isinstance(together, Score)
    assert (together.value, together.usage.llm_calls) == (0.5, 1)
    thinking = LLMReply("<think>No?</think>**Yes**", probabilities={"yes": 0.1, "no": 0.9})
    outcome = ContextRelevancy(llm=FakeLLM(thinking, asking="one_by_one")).score(SAMPLE)
    assert outcome.value == 1.0
    assert {verdict.probability for verdict in outcome.verdicts} == {None}  # they may be those of the thoughts


def logprobs(*words):
    top = [{"token": "yes", "logprob": -0.5}, {"token": "no", "logprob": -1.0}]
    return {"content": [{"token": word, "logprob": -0.5, "top_logprobs": top} for word in words]}


@pytest.mark.parametrize(
    ("written", "words", "known"),
    [
        ("yes", ["yes"], True),
        ("Yes.", ["Ye", "s", ".", "<|im_end|>"], True),
        ("no?</think>\n\nyes", ["no", "?", "</think>", "\n\n", "yes", "</s>"], True),
        ("<think>no?</think>yes", ["<think>", "no", "?</think>", "yes"], True),
        ("<think>no?</think>yes", ["no"], False),
        ("yes", ["yes", ",", " or", " no", "?", "yes"], False),  # the server took the thoughts out of the text alone
        ("yes", ["No", "?"], False),
    ],
)
def test_probabilities_are_those_of_the_answer(written, words, known):
    reply = read_reply(written, CHOICE, logprobs=logprobs(*words))
    assert reply.text == "yes"
    assert (reply.probabilities is not None) == known


@pytest.mark.parametrize(
    ("calls", "reasoning", "text"),
    [
        ([ONE], "", ONE),
        ([ONE], TWO, ONE),
        ([ONE, TWO], "", ""),
        ([], f" {ONE}\n", f" {ONE}\n"),
        ([], f"It is {ONE}", ""),
        ([], f"Hm.</think>{ONE}", ""),
    ],
)
@pytest.mark.parametrize("written", ["", "<think>Hm.</think>\n"])
def test_without_a_text_a_tool_call_or_reasoning_of_the_asked_form_is_read(written, calls, reasoning, text):
    assert read_reply(written, LLMRequest("a.b", "", "", {}), tool_calls=calls, reasoning=reasoning).text == text
    said = read_reply("I call a tool.", LLMRequest("a.b", "", "", {}), tool_calls=calls, reasoning=reasoning)
    assert said.text == "I call a tool."


@pytest.mark.parametrize(
    ("written", "call", "text"),
    [
        (ONE, TWO, ""),
        (f"Hm.</think>{ONE}", TWO, ""),
        (ONE, "", ""),
        (ONE, f"</think>{TWO}", ""),
    ],
)
def test_a_text_and_a_tool_call_that_differ_are_no_answer(written, call, text):
    for must_call in (False, True):
        reply = read_reply(written, LLMRequest("a.b", "", "", {}), tool_calls=[call], must_call=must_call)
        assert reply.text == text
