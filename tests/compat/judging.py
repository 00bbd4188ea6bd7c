"""A judge for scripts: it answers by the JSON Schema of the request."""

import json
from collections.abc import Mapping
from typing import Any

LIKED = ("supported", "yes", "eight")


def answer(body: Mapping[str, Any]) -> str:
    """Reply with the liked choice of each question, and one text where texts are asked for."""
    return json.dumps(filled(body["response_format"]["json_schema"]["schema"]))


def filled(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return next((word for word in LIKED if word in schema["enum"]), schema["enum"][0])
    if schema["type"] == "object":
        return {name: filled(inner) for name, inner in schema["properties"].items()}
    if schema["type"] == "array":
        return [filled(schema["items"])]
    return schema.get("minimum", 1) if schema["type"] == "integer" else "It is so."
