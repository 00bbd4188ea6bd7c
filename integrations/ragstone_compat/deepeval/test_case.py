"""What is scored."""

from enum import Enum
from typing import Any

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


class ToolCall(BaseModel):
    """A call of a tool. It is kept; no metric here reads it."""

    model_config = ConfigDict(extra="allow")

    name: str


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

    @property
    def additional_metadata(self) -> dict[str, Any] | None:
        """The metadata, by their older name."""
        return self.metadata
