"""What is scored."""

from enum import Enum
from typing import Any
from uuid import uuid4

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

SingleTurnParams = Enum(
    "SingleTurnParams",
    {
        "INPUT": "input",
        "ACTUAL_OUTPUT": "actual_output",
        "EXPECTED_OUTPUT": "expected_output",
        "CONTEXT": "context",
        "RETRIEVAL_CONTEXT": "retrieval_context",
        "METADATA": "metadata",
        "TAGS": "tags",
        "TOOLS_CALLED": "tools_called",
        "EXPECTED_TOOLS": "expected_tools",
        "MCP_SERVERS": "mcp_servers",
        "MCP_TOOLS_CALLED": "mcp_tools_called",
        "MCP_RESOURCES_CALLED": "mcp_resources_called",
        "MCP_PROMPTS_CALLED": "mcp_prompts_called",
    },
)
"""The fields of a test case. A GEval may see the first five."""
LLMTestCaseParams = SingleTurnParams
_IMAGE = "[DEEPEVAL:IMAGE:"


class ToolCall(BaseModel):
    """A call of a tool. It is kept; no metric here reads it."""

    model_config = ConfigDict(extra="allow")

    name: str


class MLLMImage(BaseModel):
    """An image. It is kept, and stands in a text by its mark; a test case with one is scored by no metric here."""

    model_config = ConfigDict(extra="allow")

    id: str = Field(default_factory=lambda: uuid4().hex)
    url: str | None = None

    def __str__(self) -> str:
        return f"{_IMAGE}{self.id}]"


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
    metadata: dict[str, Any] | None = Field(None, validation_alias=AliasChoices("metadata", "additional_metadata"))
    tools_called: list[ToolCall] | None = None
    expected_tools: list[ToolCall] | None = None
    comments: str | None = None
    multimodal: bool = False

    def model_post_init(self, _: Any, /) -> None:  # noqa: ANN401 - pydantic's
        """See whether there are images."""
        texts = (self.input, self.actual_output, self.expected_output, self.context, self.retrieval_context)
        self.multimodal = self.multimodal or _IMAGE in str(texts)

    @property
    def additional_metadata(self) -> dict[str, Any] | None:
        """The metadata, by their older name."""
        return self.metadata
