"""An assertion of promptfoo, which knows pass and score alone: an Unscored raises, an error of the test.

The output of the provider is JSON with `answer` and `contexts` here.
"""

import json

from scores import outcomes


def get_assert(output, context):
    answer = json.loads(output)
    found = outcomes(
        user_input=context["vars"]["question"], response=answer["answer"], retrieved_contexts=answer["contexts"]
    )
    parts = []
    for outcome in found:
        if outcome.value is None:
            raise RuntimeError(f"{outcome.metric}: {outcome.reason}: {outcome.detail}")
        parts.append({"pass": outcome.passed is not False, "score": outcome.value, "reason": outcome.reason})
    return {
        "pass": all(part["pass"] for part in parts),
        "score": min(part["score"] for part in parts),
        "reason": " ".join(part["reason"] for part in parts),
        "componentResults": parts,
    }
