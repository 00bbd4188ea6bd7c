"""The recipe of FactCG: its prompt to the letter, as one segment, with a tokenizer and an ONNX model made on the spot."""

import math
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from ragstone import Faithfulness, Sample
from ragstone.testing import ClaimCheckerContract

tokenizers = pytest.importorskip("tokenizers", reason="needs ragstone[local]")
pytest.importorskip("onnxruntime", reason="needs ragstone[local]")

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
# github.com/derenlei/FactCG, factcg/utils.py: INSTRUCTION_TEMPLATE.
TEMPLATE = (
    "{text_a}\n\nChoose your answer: based on the paragraph above can we conclude that "
    '"{text_b}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
)
TEXT, CLAIM = "Emma is by Jane Austen.", "Jane Austen wrote {Emma}."
SLOPE = 0.001

pytestmark = pytest.mark.skipif(not RECIPES.is_dir(), reason="needs the checkout: examples/")


@pytest.fixture
def factcg(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(RECIPES))
    return pytest.importorskip("factcg")


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number: int, value: int | str | bytes) -> bytes:
    """A field of a message of ONNX' protocol buffers."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def tensor(name: str, kind: int, *sizes: int | str) -> bytes:
    shape = b"".join(field(1, field(2 if isinstance(size, str) else 1, size)) for size in sizes)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def node(operator: str, *names: str, attribute: bytes = b"") -> bytes:
    inputs = b"".join(field(1, name) for name in names[:-1])
    return field(1, inputs + field(2, names[-1]) + field(4, operator) + attribute)


def summing_model() -> bytes:
    """Logits 0 and SLOPE times the sum of the ids that the mask lets through."""
    to_float = field(5, field(1, "to") + field(3, 1) + field(20, 2))
    weights = field(1, 1) + field(1, 2) + field(2, 1) + field(8, "weights") + field(9, struct.pack("<2f", 0.0, SLOPE))
    graph = (
        node("Mul", "input_ids", "attention_mask", "seen")
        + node("Cast", "seen", "ids", attribute=to_float)
        + node("ReduceSum", "ids", "sum")
        + node("MatMul", "sum", "weights", "logits")
        + field(2, "g")
        + field(5, weights)
        + b"".join(field(11, tensor(name, 7, 1, "length")) for name in ("input_ids", "attention_mask"))
        + field(12, tensor("logits", 1, 1, 2))
    )
    return field(1, 7) + field(7, graph) + field(8, field(2, 11))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words = re.findall(r"\w+|[^\w\s]", TEMPLATE.format(text_a=TEXT, text_b=CLAIM))
    ids = {word: i for i, word in enumerate(dict.fromkeys(["[UNK]", "[CLS]", "[SEP]", *words]))}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "model.onnx").write_bytes(summing_model())
    return tmp_path


def test_the_prompt_is_that_of_its_authors_to_the_letter(factcg: Any) -> None:
    assert factcg.prompt(TEXT, CLAIM) == TEMPLATE.format(text_a=TEXT, text_b=CLAIM)


def test_text_and_claim_are_one_segment_of_which_the_second_logit_is_the_support(factcg: Any, folder: Path) -> None:
    checker = factcg.FactCG(folder)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    one = tokenizer.encode(TEMPLATE.format(text_a=TEXT, text_b=CLAIM)).ids
    assert one.count(2) == 1, "one end of a segment"
    assert checker.check(TEXT, [CLAIM]) == pytest.approx([1 / (1 + math.exp(-SLOPE * sum(one)))], abs=1e-5)
    outcome = Faithfulness(llm=checker).score(Sample(retrieved_contexts=[TEXT], response=CLAIM))
    assert outcome.value == pytest.approx(checker.check(TEXT, [CLAIM])[0])


class TestContract(ClaimCheckerContract):
    @pytest.fixture(autouse=True)
    def _made(self, factcg: Any, folder: Path) -> None:
        self.made = factcg.FactCG(folder)

    def checker(self) -> Any:
        return self.made
