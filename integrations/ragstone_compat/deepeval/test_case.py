"""What is scored."""

from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict

SingleTurnParams = Enum(
    "SingleTurnParams",
    {
        "INPUT": "input",
        "ACTUAL_OUTPUT": "actual_output",
        "EXPECTED_OUTPUT": "expected_output",
        "CONTEXT": "context",
        "RETRIEVAL_CONTEXT": "retrieval_context",
    },
)
"""The fields of a test case that a GEval may see."""
LLMTestCaseParams = SingleTurnParams


class LLMTestCase(BaseModel):
    """One question and its answer. Fields that no metric here reads are kept as they are.

    Example:
        >>> LLMTestCase(input="Who wrote Emma?", actual_output="Jane Austen.").actual_output
        'Jane Austen.'
    """

    model_config = ConfigDict(extra="allow")

    input: str
    actual_output: str | None = None
    expected_output: str | None = None
    context: list[str] | None = None
    retrieval_context: list[str] | None = None
    name: str | None = None
    additional_metadata: dict[str, Any] | None = None
