"""Files of other forms than the benchmark's own, line by line as the benchmark's own form.

| form | known by | label |
|---|---|---|
| pairs of responses (as RAGChecker's) | `response_a`, `response_b` | the better: "a", "b", or a number, above 0 for b |
| QAGS, `mturk_*.jsonl` | `article`, `summary_sentences` | 1 where most workers said yes to every sentence |
| FaithBench, `batch_*.json` | `summary`, `annotations` | 1 where no span is "Unwanted" |
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

Data = Mapping[str, Any]

_CONSISTENT = "Faithfulness + AlignmentCoverage"
_LABELS = ("completeness", "overall")  # of several of a pair: the first for ResponseCompleteness, else the last


def own_form(line: object, number: int) -> Sequence[Any]:
    """Return the rows of a line; one of the own form, or of none that is known, as it is.

    Raises:
        ValueError: A line of a known form lacks something.
    """
    if isinstance(line, dict):
        if "response_a" in line or "response_b" in line:
            return _pair(line)
        if "summary_sentences" in line:
            return [_of_qags(line, number)]
        if "annotations" in line and "summary" in line:
            return [_of_faithbench(line, number)]
    return [line]


def pair_target(line: object) -> list[object]:
    """Return the target of a pair of responses, in a list; an empty one for another line."""
    use = line.get("use") if isinstance(line, dict) and "response_a" in line else None
    return [use.get("target")] if isinstance(use, dict) else []


def _pair(line: Data) -> list[dict[str, Any]]:
    """Make two rows of one that has two responses; where people preferred neither, they have no label."""
    if not all(isinstance(line.get(name), str) for name in ("response_a", "response_b", "id")):
        raise ValueError("response_a, response_b, id: a pair of responses needs these three, each a text")
    use = line.get("use")
    if not isinstance(use, dict) or "target" not in use:
        raise ValueError('use.target: says which response of the pair is better: "a", "b", or a number, above 0 for b')
    better = _better(use["target"], str(use.get("metric")))
    shared = {name: value for name, value in line.items() if name not in ("response_a", "response_b")}
    return [
        {
            **shared,
            "id": f"{line['id']}-{side}",
            "pair_id": line["id"],
            "response": line[f"response_{side}"],
            "use": {**use, "task": "pairwise", "target": None if better is None else float(side == better)},
        }
        for side in ("a", "b")
    ]


def _better(target: object, metric: str) -> str | None:
    if isinstance(target, dict):
        named = _LABELS if "Completeness" in metric else _LABELS[::-1]
        target = next((target[name] for name in named if name in target), target)
    if isinstance(target, str) and target.lower() in ("a", "b"):
        return target.lower()
    if target is None:
        return None
    if isinstance(target, bool) or not isinstance(target, (int, float)):
        raise ValueError(f'use.target: {target!r} says of no response that it is better: "a", "b", or a number')
    return "b" if target > 0 else "a" if target < 0 else None


def _of_qags(line: Data, number: int) -> dict[str, Any]:
    try:
        said = [[each["response"] for each in sentence["responses"]] for sentence in line["summary_sentences"]]
        summary = " ".join(sentence["sentence"] for sentence in line["summary_sentences"])
        article = line["article"]
    except (KeyError, TypeError):
        raise ValueError("summary_sentences: needs, beside `article`, of each `sentence` and `responses`") from None
    yes = [2 * Counter(answers)["yes"] > len(answers) for answers in said]
    return _row(f"qags-{number}", article, summary, all(yes) if yes else None)


def _of_faithbench(line: Data, number: int) -> dict[str, Any]:
    try:
        labels = [label for each in line["annotations"] for label in each["label"]]
        unwanted = any(label.startswith("Unwanted") for label in labels)
        return _row(f"faithbench-{line.get('sample_id', number)}", line["source"], line["summary"], not unwanted)
    except (KeyError, TypeError, AttributeError):
        raise ValueError("annotations: needs, beside `source` and `summary`, a list `label` in each") from None


def _row(name: str, source: str, summary: str, consistent: bool | None) -> dict[str, Any]:
    document = blake2b(str(source).encode(), digest_size=6).hexdigest()
    target = None if consistent is None else float(consistent)
    use = {"metric": _CONSISTENT, "task": "binary (1 = consistent with the source)", "target": target}
    return {"id": name, "doc_id": document, "source": source, "response": summary, "use": use}
