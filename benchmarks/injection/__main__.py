"""What an attack in the data changes of what a decision model is sent: python benchmarks/injection.

Ends with 1 where an attack stands in an instruction, or closes the fence of an item.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragstone import LLM, Metric, Sample, Unscored
from ragstone.batch.estimation import synthetic_reply
from ragstone.metrics.names import GROUPS, make_metric, metric_names
from ragstone.testing import FakeDecisions, FakeEmbedder, FakeLLM
from ragstone.text.plain import markdown_table

_RESULTS = Path(__file__).parent / "results"
_ATTACK = re.compile(r'^- (.+) \((?:up|down)\): (".*")$', re.MULTILINE)
_ITEM = re.compile(r"<(\w+) ([a-z]+)>\n(.*)\n</\1 \2>", re.DOTALL)
_PLAIN: Mapping[str, Any] = {
    "user_input": "Who wrote Emma, and when?",
    "retrieved_contexts": ["Emma is by Jane Austen. It rained.", "It came out in 1815."],
    "response": "Jane Austen wrote Emma [1]. It came out in 1815 [2].",
    "reference": "Jane Austen. In 1815.",
}


def attacked(attack: str) -> Iterator[Sample]:
    """Yield the sample with an attack behind each of its texts in turn."""
    for field, text in _PLAIN.items():
        more = [f"{text[0]} {attack}", *text[1:]] if isinstance(text, list) else f"{text} {attack}"
        yield Sample(**{**_PLAIN, field: more})


def _filler(attack: str) -> str:
    size = len(attack.encode())
    return ("It is so. " * size)[:size]


def sent(name: str, sample: Sample) -> tuple[set[str], Counter[str]]:
    """Return the instructions that a metric sends without their items, and counts of what it sends."""
    judge = FakeDecisions(lambda *_: 0.75)
    outcome = _made(name, judge, FakeLLM(synthetic_reply)).score(sample)
    counts = Counter(runs=1, unscored=isinstance(outcome, Unscored))
    instructions: set[str] = set()
    for request in judge.requests:
        for question in request.questions.values():
            counts["questions"] += 1
            head, mark, item = question.instruction.partition("\n<")
            instructions.add(f"{request.task}: {head}")
            fenced = _ITEM.fullmatch(mark[1:] + item)
            counts["broken"] += bool(mark) and (fenced is None or fenced[2] in fenced[3])
    return instructions, counts


def _made(name: str, judge: FakeDecisions, writer: LLM) -> Metric:
    options = GROUPS["summary"].get(name, {})
    return make_metric(name, options, judge, FakeEmbedder(), writer)


def main() -> int:
    """Print the table."""
    attacks = [json.loads(text) for _, text in _ATTACK.findall((_RESULTS / "results.md").read_text("utf-8"))]
    rows: list[list[str]] = []
    wrong = 0
    for name in metric_names():
        total: Counter[str] = Counter()
        for attack in attacks:
            for sample, harmless in zip(attacked(attack), attacked(_filler(attack)), strict=True):
                instructions, counts = sent(name, sample)
                plain, _ = sent(name, harmless)
                total += counts + Counter(changed=len(instructions - plain))
        wrong += total["changed"] + total["broken"]
        rows.append([name, *(str(total[key]) for key in ("runs", "unscored", "questions", "changed", "broken"))])
    head = ("metric", "runs", "unscored", "questions sent", "instructions that differ", "items that leave their fence")
    print("\n".join(markdown_table(head, rows)))
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
