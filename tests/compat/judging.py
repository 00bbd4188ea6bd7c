"""A judge for scripts: it answers by the JSON Schema of the request."""

import json
from collections.abc import Mapping
from typing import Any

LIKED = ("supported", "yes", "eight")


def answer(body: Mapping[str, Any]) -> str:
    """Reply with the liked choice of each question, and one text where texts are asked for."""
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
