"""What people would say of all samples, in sentences and tables: the corrected mean in front, the judge's behind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragstone.plain import count
from ragstone.report.aggregates import MetricSummary
from ragstone.report.statistics import Interval as Mean
from ragstone.report.tables import INTERVAL, Tabular, interval, interval_of, number, of_groups, percent

if TYPE_CHECKING:
    from ragstone.labels.estimates import CorrectedEstimate
    from ragstone.report.report import Report

_MANY_SKIPPED = 0.1
_ONLY_WHOLE = "Only labels of whole samples (“one score” on the page) tell what people would say"
_FEEDBACK = (
    "feedback corrects nothing: people choose themselves what they give it on, so it does not stand for other samples"
)


@dataclass(frozen=True, slots=True)
class ByLabels:
    """People's labels and a judge's scores together, on a mean, or on a mean difference b - a.

    Attributes:
        labels: How many samples, or pairs, have a label that gives a score.
        skipped: How many samples were passed over.
        people: The mean by the labels alone; None with fewer than 20, as all that follows.
        corrected: The mean that people would give all samples, by labels and judge together; None also where `why`
            says so.
        off: The judge's surplus over people: the mean of judge - people over the labelled samples.
        by_items: Whether people judged items, so that the metric's own formula made the score.
        by_judges_items: Whether the judge listed these items.
        missing: The share of the labelled samples whose list lacks something, as people said.
        why: Why there is no corrected mean; "" where there is one.
        notes: Further remarks, in sentences.
        groups: Of how many groups they are, such as "20 documents"; "" where each is one of its own.
    """

    labels: int
    skipped: int = 0
    people: Mean | None = None
    corrected: "CorrectedEstimate | None" = None
    off: "CorrectedEstimate | None" = None
    by_items: bool = False
    by_judges_items: bool = False
    missing: float = 0.0
    why: str = ""
    notes: tuple[str, ...] = ()
    groups: str = ""

    @property
    def front(self) -> Mean | None:
        """What stands in front of the judge's: the corrected mean, or the labels'; None where there is neither."""
        e = self.corrected
        return self.people if e is None else Mean(self.labels, e.mean, e.low, e.high)

    @property
    def whose(self) -> str:
        """Whose scores are estimated: what may be said of them, and no more."""
        if self.by_judges_items:
            return "by people's labels, on the items that the judge listed"
        return "by people's labels of its items" if self.by_items else "people would say"

    def difference(self, name_a: str, name_b: str, *, higher_is_better: bool) -> Iterator[str]:
        """Yield the better of two systems, if their difference b - a is estimated; then the rest."""
        if (e := self.corrected) is None:
            yield f"no corrected difference: {self.why}."
        else:
            better = name_b if (e.mean > 0) == higher_is_better else name_a
            result = f"{better} is better" if e.low > 0 or e.high < 0 else "no difference is shown"
            numbers = f"{number(e.mean, '+')}, {INTERVAL} {interval(e.low, e.high, '+')}"
            yield f"{self.whose}: {result} ({numbers})."
            yield f"{self._worth(e, 'labelled pair')}. Method: {e.method}."
        yield from self.caveats()

    def _worth(self, e: "CorrectedEstimate", noun: str) -> str:
        """The labels that the judge is worth, in words."""
        labels, worth = of_groups(count(self.labels, noun), self.groups), round(e.labels_worth)
        more = e.labels_to_halve
        halve = "no number of labels would halve" if more is None else f"{more:,} more would halve"
        halve = "more groups, not more labels, would halve" if self.groups else halve
        if worth <= self.labels:
            return f"The judge adds nothing to the {labels}; {halve} the interval"
        return f"{labels} and this judge are worth {count(worth, noun)}; {halve} the interval"

    def caveats(self) -> Iterator[str]:
        """Yield caveats about the labels."""
        if self.by_judges_items:
            yield f"“something is missing” is marked on {percent(self.missing)} of the labelled samples. {_ONLY_WHOLE}."
        elif self.by_items:
            yield f"{_ONLY_WHOLE}."
        if self.skipped:
            many = self.skipped > _MANY_SKIPPED * (self.labels + self.skipped)
            warning = " Warning: the labels stand only for such samples as people could judge." if many else ""
            yield f"{count(self.skipped, 'sample')} skipped.{warning}"
        yield from self.notes


@dataclass(frozen=True, slots=True)
class Correction(ByLabels):
    """One metric's scores, corrected by labels.

    Attributes:
        summary: The metric's scores; `summary.mean` is the judge's mean alone.
        kappa: Cohen's kappa of judge and people over the labelled samples, with its interval; of scores weighted by
            their squared differences; None where it is undefined.
        sensitivity: Of the samples to which people give 1, the share to which the judge does; None where they or it
            give something else than 0 and 1.
        specificity: Of those to which people give 0, the share to which the judge does, likewise.
    """

    summary: MetricSummary = field(kw_only=True)
    kappa: Mean | None = None
    sensitivity: Mean | None = None
    specificity: Mean | None = None

    def conclusion(self) -> str:
        """People's mean and the judge's, in one sentence; without the former, the reason."""
        if (e := self.front) is None:
            return f"no corrected mean: {self.why}."
        ends = "" if e.low is None or e.high is None else f" ({e.low:.2f} to {e.high:.2f})"
        whose = f"{self.whose}:" if self.by_items else self.whose
        judge = self.summary.mean
        return f"{whose} {e.mean:.2f}{ends}" + ("." if judge is None else f"; the judge says {judge:.2f}.")

    def sentences(self) -> Iterator[str]:
        """Yield the numbers in sentences."""
        if (e := self.corrected) is not None:
            yield f"{self._worth(e, 'label')}. Method: {e.method}."
        elif self.people is not None:
            yield f"no corrected mean: {self.why}."
        if (off := self.off) is not None:
            excess = f"{number(abs(off.mean))} {'more' if off.mean >= 0 else 'less'}"
            difference = f"judge - people: {interval(off.low, off.high, '+')}"
            yield f"the judge gives {excess} than people do ({difference})."
        figures = (("Cohen's kappa", self.kappa), ("sensitivity", self.sensitivity), ("specificity", self.specificity))
        if known := [f"{name} {number(e.mean)} ({_ends(e)})" for name, e in figures if e is not None]:
            yield f"agreement of judge and people: {', '.join(known)}."
        yield from self.caveats()


class Corrections(Tabular, dict[str, Correction]):
    """A report's scores, corrected by labels, by the metric's name. `print` shows it as a table, a notebook too.

    Attributes:
        report: The report.
    """

    def __init__(self, report: "Report", metrics: Mapping[str, Correction]) -> None:
        super().__init__(metrics)
        self.report = report

    def table(self) -> tuple[str, Sequence[str], list[tuple[str, ...]]]:
        """The title, head and rows of a table that has all metrics; the first column is the name."""
        whole = not any(each.by_items for each in self.values())
        rows: list[tuple[str, ...]] = []
        for name, each in self.items():
            labels = of_groups(count(each.labels, "label"), each.groups)
            rows.append((name, "corrected", *_mean_cells(each.corrected)))
            rows.append((name, f"{labels} alone", *_mean_cells(each.people)))
            rows.append((name, "judge alone", *_mean_cells(each.summary)))
        title = "What people would say" if whole else "By people's labels"
        return title, ("metric", "by", "mean", INTERVAL), rows

    def conclusion(self) -> str:
        """People's mean and the judge's, in a line for each metric that has a corrected mean."""
        if len(self.report.summary()) > 1:
            return "\n".join(f"{name}: {each.conclusion()}" for name, each in self.items())
        sentence = "".join(each.conclusion() for each in self.values())
        return f"{sentence[:1].upper()}{sentence[1:]}"

    def data(self) -> dict[str, object]:
        """For a page: each metric's corrected mean, which is its large figure there, and the judge's beside it."""
        corrected = [
            {"name": name, "key": each.summary.info.key, "whose": each.whose, **(_mean_as_json(each.front) or {})}
            for name, each in self.items()
        ]
        return {**super().data(), "corrected": corrected}

    def figures(self) -> dict[str, object]:
        """Its numbers by metric, as JSON can hold them, for --json."""
        metrics = {
            name: {
                "labels": each.labels,
                "groups": each.groups or None,
                "corrected": _mean_as_json(each.corrected),
                "labels_alone": _mean_as_json(each.people),
                "judge_alone": _mean_as_json(each.summary),
            }
            for name, each in self.items()
        }
        return {"metrics": metrics, "remarks": list(self.remarks())}

    def remarks(self) -> Iterator[str]:
        """Yield remarks beside the table, in sentences."""
        for name, each in self.items():
            yield from (f"{name}: {sentence}" for sentence in each.sentences())
        if left := [name for name in self.report.summary() if name not in self]:
            yield f"no labels of {', '.join(left)}"
        if self.report.aggregates().feedback:
            for name, means in self.report.by("feedback").items():
                by_thumb = ", ".join(f"{word or 'none'} {number(e.mean)} ({e.n:,})" for word, e in means.items())
                yield f"{name} by feedback, by the judge alone: {by_thumb}"
            yield _FEEDBACK
        yield from self.report.notes


def _mean_as_json(each: "CorrectedEstimate | MetricSummary | Mean | None") -> dict[str, float | None] | None:
    return None if each is None else {"mean": each.mean, "low": each.low, "high": each.high}


def _ends(e: Mean) -> str:
    return interval_of(e) if e.low is not None or e.n == 1 else "no interval: all agree"


def _mean_cells(each: "CorrectedEstimate | MetricSummary | Mean | None") -> tuple[str, str]:
    if each is None:
        return number(None), number(None)
    return number(each.mean), interval_of(each.estimate) if isinstance(each, MetricSummary) else interval(
        each.low, each.high
    )
