"""The set: rows of samples.jsonl, and the samples they make.

It was written for this benchmark and is under this repository's licence. The facts are made up or common knowledge.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from ragstone import Sample

SET = Path(__file__).resolve().parent / "samples.jsonl"
LANGUAGES = ("en", "de", "es", "zh", "ja", "hi", "ar")
UNSPACED = ("zh", "ja")  # no space between sentences


@dataclass(frozen=True)
class Row:
    """One row; its texts are given as lists of their sentences. Rows of one id are translations of one another."""

    id: str
    language: str
    user_input: str
    retrieved_contexts: list[list[str]]
    response: list[str]
    summary: list[str]

    def text(self, sentences: list[str]) -> str:
        return ("" if self.language in UNSPACED else " ").join(sentences)

    def texts(self) -> list[list[str]]:
        """Return every text that has sentences to split: contexts, response, summary."""
        return [*self.retrieved_contexts, self.response, self.summary]

    def sample(self, *, summary: bool) -> Sample:
        """Return the sample with the row's response, or with its summary of the contexts in the response's place."""
        return Sample(
            id=f"{self.language}/{self.id}",
            user_input=self.user_input,
            retrieved_contexts=[self.text(context) for context in self.retrieved_contexts],
            response=self.text(self.summary if summary else self.response),
        )


def read_rows(path: Path = SET) -> list[Row]:
    return [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
