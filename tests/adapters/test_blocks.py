"""The text of a message's blocks, in the words of each provider."""

import pytest

from ragstone.adapters.blocks import calls_tools, text_of_blocks, texts_of_results

SAID = [
    {"type": "reasoning", "summary": []},
    {"type": "text", "text": "Emma is a"},
    {"type": "text", "text": " novel."},
]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Emma.", "Emma."),
        (None, ""),
        (["Emma.", "It is a novel."], "Emma.\n\nIt is a novel."),
        (SAID, "Emma is a novel."),
        ([{"type": "input_text", "text": "Who?"}, {"type": "input_image", "image_url": "u"}], "Who?"),
        ([{"type": "refusal", "refusal": "I cannot say."}], "I cannot say."),
        ([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "One."}, {"type": "text", "text": "Two."}],
         "One.\n\nTwo."),
        ([{"type": "text", "text": None}], ""),
        ({"type": "text", "text": "no list"}, None),
        (("human", "a pair"), None),
        (7, None),
    ],
)  # fmt: skip
def test_text_of_blocks(content: object, text: str | None) -> None:
    assert text_of_blocks(content) == text


def test_pieces_of_a_stream_are_one_text() -> None:
    pieces = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    assert text_of_blocks(pieces, pieces=True) == "One.Two."
    joined = [{**piece, "index": number} for number, piece in enumerate(pieces)]
    assert text_of_blocks(joined, pieces=True) == "One.\n\nTwo."


@pytest.mark.parametrize("kind", ["tool_use", "tool_call", "function_call"])
def test_blocks_that_call_tools(kind: str) -> None:
    assert calls_tools([{"type": "text", "text": "I look."}, {"type": kind, "name": "search"}])
    assert not calls_tools([{"type": "text", "text": kind}])
    assert not calls_tools(kind)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ([{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}], ["One.", "Two."]),
        ([{"type": "search_result", "source": "u", "title": "t", "content": [{"type": "text", "text": "One."}]}], ["One."]),
        ([{"type": "search_result", "content": []}], [""]),
        ([{"type": "image", "url": "u"}], None),
        ([], None),
        ("One.", None),
    ],
)  # fmt: skip
def test_each_block_of_a_tool_is_a_passage(content: object, texts: list[str] | None) -> None:
    assert texts_of_results(content) == texts
