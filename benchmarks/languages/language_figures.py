"""From outcomes to figures: per language and metric, and for splitting."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from language_rows import LANGUAGES, Row
from language_told import language_told

from ragstone import Score, Unscored
from ragstone.text import language_of, split_sentences

WITHIN = 0.1
_MADE = ("question", "claim", "source_answer")  # kinds of verdicts whose text the judge wrote


@dataclass(frozen=True)
class Scored:
    """What one metric gave for one row."""

    language: str
    id: str
    metric: str
    outcome: Score | Unscored

    @property
    def value(self) -> float | None:
        return self.outcome.value if isinstance(self.outcome, Score) else None

    def made(self) -> list[str]:
        """Return what the judge wrote: questions and claims."""
        verdicts = self.outcome.verdicts if isinstance(self.outcome, Score) else ()
        return [verdict.text for verdict in verdicts if verdict.kind in _MADE]


def figures(scored: Sequence[Scored], metrics: Sequence[str]) -> list[dict[str, object]]:
    """Return a row per metric and language; the differences are over rows that both twins have a score for."""
    values = {(s.metric, s.language, s.id): s.value for s in scored}
    table: list[dict[str, object]] = []
    for metric in metrics:
        for language in LANGUAGES:
            own = [s for s in scored if (s.metric, s.language) == (metric, language)]
            if not own:
                continue
            pairs = [(s.value, values.get((metric, "en", s.id))) for s in own]
            apart = [abs(a - b) for a, b in pairs if a is not None and b is not None]
            known = [s.value for s in own if s.value is not None]
            told = Counter(language_told(text) for s in own for text in s.made())
            table.append(
                {
                    "metric": metric,
                    "language": language,
                    "rows": len(own),
                    "unscored": dict(Counter(s.outcome.reason for s in own if isinstance(s.outcome, Unscored))),
                    "mean": mean(known) if known else None,
                    "twins": len(apart),
                    "difference": mean(apart) if apart else None,
                    "within": sum(d <= WITHIN + 1e-9 for d in apart) / len(apart) if apart else None,
                    "written": sum(told.values()),
                    "in_its_language": told[language],
                    "in_other_languages": {k: n for k, n in sorted(told.items()) if k != language},
                    "llm_calls": sum(s.outcome.usage.llm_calls for s in own),
                    "seconds": sum(s.outcome.usage.seconds for s in own),
                }
            )
    return table


def splitting(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return, per language, the share of texts that are split into exactly the sentences they were written as."""
    table: list[dict[str, object]] = []
    for language in LANGUAGES:
        texts = [
            (row.text(sentences), sentences) for row in rows if row.language == language for sentences in row.texts()
        ]
        if not texts:
            continue
        ways = {
            "unnamed": [_exact(text, wanted, language_of(text)) for text, wanted in texts],
            "named": [_exact(text, wanted, language) for text, wanted in texts],
            "english": [_exact(text, wanted, "en") for text, wanted in texts],
        }
        count = {"texts": len(texts), "sentences": sum(len(wanted) for _, wanted in texts)}
        table.append({"language": language, **count, **{way: mean(exact) for way, exact in ways.items()}})
    return table


def _exact(text: str, wanted: list[str], language: str) -> bool:
    return [sentence.text.strip() for sentence in split_sentences(text, language)] == wanted
