"""Data sets: test cases, and goldens that become test cases when the app has answered them."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ragstone_compat.deepeval.evaluate import evaluate
from ragstone_compat.deepeval.metrics import BaseMetric
from ragstone_compat.deepeval.test_case import LLMTestCase


class Golden(LLMTestCase):
    """A test case that the app has not answered yet."""


@dataclass
class EvaluationDataset:
    """Test cases and goldens. Test cases among the goldens are test cases, which older releases of DeepEval took first.

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

    def add_goldens_from_json_file(self, file_path: str) -> None:
        """Add a golden for each object of a JSON file's list."""
        self.goldens += [Golden.model_validate(each) for each in json.loads(Path(file_path).read_text("utf-8"))]

    def add_test_cases_from_json_file(self, file_path: str, **keys: str) -> None:
        """Add a test case for each object of a JSON file's list.

        Args:
            file_path: The file.
            **keys: The key of a field where it is another one: `actual_output_key_name="answer"`.
        """
        names = {name.removesuffix("_key_name"): key for name, key in keys.items()}
        self._add(json.loads(Path(file_path).read_text("utf-8")), names)

    def add_test_cases_from_csv_file(self, file_path: str, **columns: str) -> None:
        """Add a test case for each row of a CSV file.

        Args:
            file_path: The file.
            **columns: The column of a field where it is another one, `actual_output_col_name="answer"`, and what
                parts the texts of a list, `retrieval_context_col_delimiter=";"` (";" by default).
        """
        names = {name.removesuffix("_col_name"): column for name, column in columns.items()}
        with Path(file_path).open(encoding="utf-8", newline="") as file:
            rows: list[dict[str, Any]] = [{**row} for row in csv.DictReader(file)]
        for name in ("context", "retrieval_context"):
            column, parts = names.get(name, name), names.get(f"{name}_col_delimiter", ";")
            for row in rows:
                row[column] = row[column].split(parts) if row.get(column) else None
        self._add(rows, names)

    def _add(self, rows: list[dict[str, Any]], names: Mapping[str, str]) -> None:
        fields = {name: names.get(name, name) for name in LLMTestCase.model_fields}
        self.test_cases += [
            LLMTestCase.model_validate({name: row[key] for name, key in fields.items() if key in row}) for row in rows
        ]

    def pull(self, *_: object, **__: object) -> None:
        """Refuse: there is no hosted platform."""
        raise NotImplementedError("pull, push: ragstone has no hosted platform; keep your data set in a file")

    push = pull

    def __iter__(self) -> Iterator[LLMTestCase]:
        return iter(self.test_cases)

    def evaluate(self, metrics: Sequence[BaseMetric]) -> SimpleNamespace:
        """Score the test cases, as `evaluate` does."""
        return evaluate(self, metrics)
