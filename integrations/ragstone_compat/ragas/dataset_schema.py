"""Samples, data sets and results, by ragas' names."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from ragstone import Report, Sample, Usage
from ragstone.fields.names import STRONG, STRONGLY, FieldName, bare
from ragstone.fields.read import Found
from ragstone.plain import is_list
from ragstone.sample import BadLine
from ragstone.sources.cells import field_value
from ragstone.sources.reader import RowReader

_FIELDS = ("user_input", "retrieved_contexts", "response", "reference")
_IDS: Mapping[str, FieldName] = {"retrieved_context_ids": "retrieved_ids", "reference_context_ids": "reference_ids"}
_NOT_READ = frozenset(STRONG["id"] + STRONG["history"] + STRONG["metadata"])


class SingleTurnSample(BaseModel):
    """One question, the contexts retrieved for it, and the answer."""

    model_config = ConfigDict(extra="allow")

    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    reference_contexts: list[str] | None = None
    retrieved_context_ids: list[str] | list[int] | None = None
    reference_context_ids: list[str] | list[int] | None = None
    response: str | None = None
    reference: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that hold something."""
        return self.model_dump(exclude_none=True)

    @property
    def native(self) -> Sample:
        """The sample as ragstone has it; reference contexts, which only summaries need, are metadata."""
        fields = {name: getattr(self, name) for name in _FIELDS}
        fields |= {ours: getattr(self, name) for name, ours in _IDS.items()}
        return Sample(**fields, metadata=self.model_dump(include={"reference_contexts"}, exclude_none=True))


@dataclass
class EvaluationDataset:
    """A data set."""

    samples: Sequence[SingleTurnSample]
    backend: str | None = None
    name: str | None = None

    @classmethod
    def from_list(cls, data: Any, column_map: Mapping[str, str] | None = None, **_: object) -> "EvaluationDataset":  # noqa: ANN401
        """Return the data set of dicts or samples, of a pandas DataFrame, or of a Hugging Face dataset.

        Args:
            data: The rows, with ragas' names of today or of 0.1.
            column_map: The column by the name.

        Raises:
            ValueError: A row holds no sample; the message says which, and why.
        """
        names = {_field(name): column for name, column in (column_map or {}).items()}
        column = names.pop("reference_contexts", "reference_contexts")
        reader = RowReader(names)
        samples: list[SingleTurnSample] = []
        for number, record in enumerate(rows_in(data), 1):
            ids: dict[str, Any] = {name: _ids(name, record.pop(name)) for name in _IDS if name in record}
            if ids and not record:
                samples.append(SingleTurnSample(**ids))
                continue
            chosen = {*_FIELDS, *names.values()}
            others = {name for name in record if name not in chosen and _field(name) in {*record, *names}}
            texts = {name: value for name, value in record.items() if name not in _NOT_READ | others}
            row = reader.row(number, texts, table=True)
            if isinstance(row, BadLine):
                raise ValueError(f"row {number}: {row.problem}")
            fields = row.sample.model_dump(include=set(_FIELDS), exclude_unset=True)
            if "summary" in record:
                fields.setdefault("response", record["summary"])
            samples.append(SingleTurnSample(**fields, **ids, reference_contexts=record.get(column)))
        return cls(samples)

    from_dict = from_pandas = from_hf_dataset = from_list

    @classmethod
    def from_jsonl(cls, path: str | Path) -> "EvaluationDataset":
        """Return the data set that a file of JSON lines holds."""
        with Path(path).open(encoding="utf-8") as file:
            return cls.from_list([json.loads(line) for line in file if line.strip()])

    def to_list(self) -> list[dict[str, Any]]:
        """Return each sample's fields."""
        return [sample.to_dict() for sample in self.samples]

    def to_pandas(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame; pandas is no dependency
        """Return a pandas DataFrame with a row for each sample."""
        return import_module("pandas").DataFrame(self.to_list())

    def to_hf_dataset(self) -> Any:  # noqa: ANN401 - a datasets.Dataset; datasets is no dependency
        """Return a Hugging Face dataset."""
        return import_module("datasets").Dataset.from_list(self.to_list())

    def to_jsonl(self, path: str | Path) -> None:
        """Write a file of JSON lines."""
        lines = [json.dumps(row, ensure_ascii=False) for row in self.to_list()]
        Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file by pandas."""
        self.to_pandas().to_csv(path, index=False)

    def features(self) -> list[str]:
        """Return the names of the fields that the first sample has."""
        return list(self.samples[0].to_dict())

    def __iter__(self) -> Iterator[SingleTurnSample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - a sample, or of a slice a data set
        found = cast("Any", self.samples[place])
        return EvaluationDataset(found) if isinstance(place, slice) else found


def _field(name: str) -> str:
    """The field that a column's name means."""
    return STRONGLY.get(bare(name), (name,))[0]


def _ids(name: str, value: object) -> object:
    """The ids in a cell, which is a text where the data set came from a CSV file."""
    read = None if is_list(value) else field_value(_IDS[name], Found(value, name, value), table=True)
    return value if read is None else read


def rows_in(data: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of any package
    """The rows of a data set, each without what is None."""
    rows = data.to_dict("records") if hasattr(data, "columns") else data
    return [{name: value for name, value in dict(row).items() if value is not None} for row in rows]


def mean(values: Iterable[float]) -> float:
    """Return the mean of what is no NaN; NaN where nothing is left."""
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


safe_nanmean = mean


def _of_mean(name: str) -> Callable[..., Any]:
    def of_mean(scores: "Scores", *others: object) -> object:
        return getattr(mean(scores), name)(*others)

    return of_mean


class Scores(list[float]):
    """A metric's scores; scripts for ragas 0.1 compute with it as with their mean."""

    __float__, __format__, __round__ = map(_of_mean, ("__float__", "__format__", "__round__"))
    __lt__, __le__, __gt__, __ge__ = map(_of_mean, ("__lt__", "__le__", "__gt__", "__ge__"))
    __mul__, __rmul__, __truediv__ = map(_of_mean, ("__mul__", "__rmul__", "__truediv__"))


class EvaluationResult(dict[str, Any]):
    """The mean of each metric by its name; NaN stands for what could not be scored.

    `result["faithfulness"]` is the list of its scores.

    Attributes:
        scores: Each sample's scores by the metric's name.
        dataset: What was scored.
        report: ragstone's report, which has the reasons and the evidence.
    """

    def __init__(
        self,
        scores: list[dict[str, float]],
        dataset: EvaluationDataset,
        report: Report,
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.scores, self.dataset, self.report, self._rows = scores, dataset, report, rows
        super().__init__({name: mean(self[name]) for name in (scores[0] if scores else ())})

    # Scripts read the means and the scores there, as ragas since 0.2 has no other way to them.
    _repr_dict, _scores_dict = property(dict), property(lambda self: {name: self[name] for name in self})

    def __getitem__(self, name: str) -> Scores:
        if name not in self.scores[0]:
            raise KeyError(name)
        return Scores(row[name] for row in self.scores)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: {value:.4f}" for name, value in self.items()) + "}"

    def to_pandas(self, **_: object) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """Return a pandas DataFrame: the data set's columns, by the names that they came with too, and the scores."""
        table = zip(self._rows, self.dataset.to_list(), self.scores, strict=True)
        return import_module("pandas").DataFrame([{**row, **sample, **scores} for row, sample, scores in table])

    def total_tokens(self) -> Usage:
        """The tokens and calls of the run, also without `token_usage_parser`."""
        return self.report.usage

    def total_cost(self, cost_per_input_token: float = 0.0, cost_per_output_token: float = 0.0, **_: object) -> float:
        """The price of the run; NaN where the judge reports no tokens."""
        usage = self.report.usage
        if usage.input_tokens is None or usage.output_tokens is None:
            return math.nan
        return usage.input_tokens * cost_per_input_token + usage.output_tokens * cost_per_output_token

    def upload(self, **_: object) -> None:
        """Refuse: nothing is sent anywhere."""
        raise NotImplementedError("upload: ragstone sends nothing anywhere; result.report.save(PATH) writes a page")
