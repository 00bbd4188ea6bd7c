"""Data sets: test cases, and goldens that become test cases when the app has answered them."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from ragstone_compat.deepeval.evaluate import evaluate
from ragstone_compat.deepeval.metrics import BaseMetric
from ragstone_compat.deepeval.test_case import LLMTestCase
from ragstone_compat.missing import missing_name

_Case = TypeVar("_Case", bound=LLMTestCase)
_LISTS = ("context", "retrieval_context")
_JSON = ("additional_metadata", "expected_tools", "metadata", "tools_called")
"""The columns whose cells are JSON."""


class Golden(LLMTestCase):
    """A test case that the app has not answered yet."""


@dataclass
class EvaluationDataset:
    """Test cases and goldens. Test cases may stand among the goldens, as in older releases of DeepEval.

    Example:
        >>> dataset = EvaluationDataset(goldens=[Golden(input="Who wrote Emma?")])
        >>> for golden in dataset.goldens:
        ...     dataset.add_test_case(LLMTestCase(input=golden.input, actual_output="Jane Austen."))
        >>> len(dataset.test_cases)
        1
    """

    goldens: list[LLMTestCase] = field(default_factory=list[LLMTestCase])
    test_cases: list[LLMTestCase] = field(default_factory=list[LLMTestCase])

    def __post_init__(self) -> None:
        self.test_cases = [*self.test_cases, *(each for each in self.goldens if not isinstance(each, Golden))]
        self.goldens = [each for each in self.goldens if isinstance(each, Golden)]

    def add_test_case(self, test_case: LLMTestCase) -> None:
        """Add a test case."""
        self.test_cases.append(test_case)

    def add_golden(self, golden: Golden) -> None:
        """Add a golden."""
        self.goldens.append(golden)

    def add_goldens_from_json_file(self, file_path: str, encoding_type: str = "utf-8", **keys: str) -> None:
        """Add a golden for each object of a JSON file's list; `keys` as those of test cases."""
        self.goldens += _read(Golden, json.loads(Path(file_path).read_text(encoding_type)), keys)

    def add_goldens_from_jsonl_file(self, file_path: str, encoding_type: str = "utf-8", **keys: str) -> None:
        """Add a golden for each line of a file of JSON lines."""
        lines = Path(file_path).read_text(encoding_type).splitlines()
        self.goldens += _read(Golden, [json.loads(line) for line in lines if line.strip()], keys)

    def add_goldens_from_csv_file(self, file_path: str, **columns: str) -> None:
        """Add a golden for each row of a CSV file; `columns` as those of test cases."""
        self.goldens += _read(Golden, _csv_rows(file_path, columns), columns)

    def add_test_cases_from_json_file(self, file_path: str, encoding_type: str = "utf-8", **keys: str) -> None:
        """Add a test case for each object of a JSON file's list.

        Args:
            file_path: The file.
            encoding_type: Its encoding.
            **keys: The key of a field where it is another one: `actual_output_key_name="answer"`.
        """
        self.test_cases += _read(LLMTestCase, json.loads(Path(file_path).read_text(encoding_type)), keys)

    def add_test_cases_from_csv_file(self, file_path: str, **columns: str) -> None:
        """Add a test case for each row of a CSV file.

        Args:
            file_path: The file.
            **columns: The column of a field where it is another one, `actual_output_col_name="answer"`, and what
                parts the texts of a list, `retrieval_context_col_delimiter=";"` ("|" by default).
        """
        self.test_cases += _read(LLMTestCase, _csv_rows(file_path, columns), columns)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return missing_name(__name__, name)

    def __iter__(self) -> Iterator[LLMTestCase]:
        return iter(self.test_cases)

    def evaluate(self, metrics: Sequence[BaseMetric]) -> SimpleNamespace:
        """Score the test cases, as `evaluate` does."""
        return evaluate(self, metrics)


def _read(kind: type[_Case], rows: list[dict[str, Any]], named: Mapping[str, str]) -> list[_Case]:
    """Rows as test cases or goldens, by the names that the caller gave of keys or columns."""
    names = {name.removesuffix("_key_name").removesuffix("_col_name"): key for name, key in named.items()}
    fields = {name: names.get(name, name) for name in (*kind.model_fields, "additional_metadata")}
    return [kind.model_validate({name: row[key] for name, key in fields.items() if key in row}) for row in rows]


def _csv_rows(file_path: str, named: Mapping[str, str]) -> list[dict[str, Any]]:
    with Path(file_path).open(encoding="utf-8-sig", newline="") as file:
        rows: list[dict[str, Any]] = [
            {name: cell for name, cell in row.items() if cell} for row in csv.DictReader(file)
        ]
    for name in (*_LISTS, *_JSON):
        column, parts = named.get(f"{name}_col_name", name), named.get(f"{name}_col_delimiter", "|")
        for row in rows:
            if column in row:
                row[column] = row[column].split(parts) if name in _LISTS else json.loads(row[column])
    return rows
