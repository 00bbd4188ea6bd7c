"""A prompt changes together with its metric's version: whoever compares scores must see that the judge was asked anew.

Everything the judge reads is pinned here, by metric and version: prompts, schemas, temperatures, the re-ask. When a
digest differs, raise the metric's `version` if its last one has been released, and pin the digest that the test names.
"""

import hashlib
import json

import pytest

from ragstone import Sample

from ..core.judges import metrics, truth  # noqa: TID252 - under importlib mode tests are no package

PINNED = {
    "alignment_coverage 1": "8f9fcaa6ce5bd563",
    "context_relevancy 1": "070afce2dbf8ba3f",
    "response_relevancy 1": "b624ce86d7beeb18",
    "summarization_score 1": "07479f4d9dd7597e",
}

SAMPLE = Sample(
    user_input="The app logs meals. Not so: The app is old.",
    retrieved_contexts=["The app logs meals. The app is new.", "It rains."],
    response="The app logs meals. The app is new.",
)


@pytest.fixture(scope="module")
def digests() -> dict[str, str]:
    """The digest of all requests of each metric, with true replies and with useless ones."""
    asked: dict[str, set[str]] = {}
    for asking in ("together", "one_by_one"):
        for reply in (truth, lambda request: "That is hard to say."):
            for metric in metrics(reply, asking):
                metric.score(SAMPLE)
                requests = [[r.task, r.system, r.user, r.schema, r.temperature, r.choices] for r in metric.llm.requests]
                texts = asked.setdefault(f"{metric.name} {metric.version}", set())
                texts |= {json.dumps(request, sort_keys=True) for request in requests}
    return {name: hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16] for name, texts in asked.items()}


def test_every_metric_is_pinned(digests: dict[str, str]) -> None:
    assert sorted(digests) == sorted(PINNED)


@pytest.mark.parametrize("name", PINNED)
def test_the_prompts_are_those_of_the_version(digests: dict[str, str], name: str) -> None:
    assert digests.get(name) == PINNED[name], "the prompts have changed: see the top of this file"
