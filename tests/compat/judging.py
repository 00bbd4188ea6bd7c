"""A judge for scripts: it answers by the JSON Schema of the request."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..support.openai_server import embeddings  # noqa: TID252 - under importlib mode tests are no package

LIKED = ("supported", "yes", "eight")


def changed(library: str, name: str) -> str:
    """A library's script with changed import lines."""
    text = (Path(__file__).parent / f"{library}_scripts" / f"{name}.txt").read_text(encoding="utf-8")
    text = re.sub(rf"^import {library}$", f"from ragstone_compat import {library}", text, flags=re.MULTILINE)
    return re.sub(rf"^from {library}\b", f"from ragstone_compat.{library}", text, flags=re.MULTILINE)


def answer(body: Mapping[str, Any]) -> Any:
    """Reply with the liked choice of each question, and one text where texts are asked for; all have one direction."""
    if "input" in body:
        return embeddings([[3.0, 4.0]] * len(body["input"]))
    schema = body["response_format"]["json_schema"]["schema"]
    return json.dumps(filled(schema, schema))


def filled(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return filled(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    choices = schema.get("enum", [schema.get("const")])
    if choices != [None]:
        return next((word for word in LIKED if word in choices), choices[0])
    if schema["type"] == "boolean":
        return False
    if schema["type"] == "object":
        return {name: filled(inner, whole) for name, inner in schema["properties"].items()}
    if schema["type"] == "array":
        return [filled(schema["items"], whole)] * max(1, schema.get("minItems", 1))
    return schema.get("minimum", 1) if schema["type"] == "integer" else "It is so."
