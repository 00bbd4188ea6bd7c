"""LlamaIndex' own structured output, for those who want it, by a form made of the request's JSON Schema."""

import re
from collections.abc import Sequence
from typing import Any, cast

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate
from pydantic import BaseModel, ConfigDict, model_validator

from ragstone.judge import LLMReply, LLMRequest
from ragstone.judging.values import as_dict, as_list


def ask_structured(llm: LLM, request: LLMRequest, messages: Sequence[ChatMessage]) -> LLMReply:
    """Ask by `structured_predict`, which says nothing of tokens.

    What the model answered in no usable form becomes a reply that no metric accepts, so that it is asked again.
    """
    try:
        answer = llm.structured_predict(form(request), _template(messages))
    except ValueError as unusable:  # pydantic's is one too
        return _no_answer(unusable)
    return LLMReply(answer.model_dump_json())


async def aask_structured(llm: LLM, request: LLMRequest, messages: Sequence[ChatMessage]) -> LLMReply:
    """Ask by `astructured_predict`; otherwise as `ask_structured`."""
    try:
        answer = await llm.astructured_predict(form(request), _template(messages))
    except ValueError as unusable:
        return _no_answer(unusable)
    return LLMReply(answer.model_dump_json())


def form(request: LLMRequest) -> type[BaseModel]:
    """Return a model that shows the request's schema and takes any object with its fields.

    The metric's own parser checks what is in them. An object without them must be refused here: LlamaIndex first hands
    a tool's only argument over without its name, and tries again by name if that is an error.

    Example:
        >>> shown = form(LLMRequest("demo.ask", "", "", {"type": "object", "properties": {}})).model_json_schema()
        >>> shown["title"], shown["type"]
        ('demo_ask', 'object')
    """
    schema = {"title": re.sub(r"\W+", "_", request.task), **request.schema}

    class Form(BaseModel):
        model_config = ConfigDict(extra="allow")

        @model_validator(mode="before")
        @classmethod
        def _has_its_fields(cls, values: object) -> object:
            if missing := [name for name in as_list(schema.get("required")) if name not in as_dict(values)]:
                raise ValueError(f"no {missing[0]}")
            return values

        @classmethod
        def model_json_schema(cls, *args: object, **kwargs: object) -> dict[str, Any]:  # noqa: ARG003
            return schema

    return Form


def _template(messages: Sequence[ChatMessage]) -> PromptTemplate:
    """Return the messages as what structured_predict takes; braces in them stay, as nothing is filled in."""
    return cast("PromptTemplate", ChatPromptTemplate(message_templates=messages))  # its annotation is too narrow


def _no_answer(unusable: ValueError) -> LLMReply:
    return LLMReply(f"(no structured answer: {type(unusable).__name__}: {str(unusable)[:200]})")
