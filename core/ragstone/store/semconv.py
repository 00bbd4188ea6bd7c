"""Names of OpenTelemetry's conventions for generative AI, and of ours beside them.

The conventions are still in development (github.com/open-telemetry/semantic-conventions-genai, read in November 2026);
the package that holds their constants in Python pins the API's version, so they are written down here. What changes
there is changed here and nowhere else.
"""

EVENT = "gen_ai.evaluation.result"
"""The event's name."""

NAME = "gen_ai.evaluation.name"
"""The metric's name. Required."""

SCORE_VALUE = "gen_ai.evaluation.score.value"
"""The score, a double. Absent where there is none."""

SCORE_LABEL = "gen_ai.evaluation.score.label"
"""`PASSED` or `FAILED`, by the metric's threshold. Absent where it has none."""

EXPLANATION = "gen_ai.evaluation.explanation"
"""What the score rests on, or why there is none."""

ERROR_TYPE = "error.type"
"""Why there is no score, in one word."""

EVALUATOR_VERSION = "gen_ai.evaluation.evaluator.version"
"""The metric's version. Not in the conventions yet; the name that Pydantic Evals gives it."""

SCORE_METRIC = "gen_ai.evaluation.score"
"""The histogram's name. The conventions have none yet; the name in use elsewhere."""

PASSED = "passed"
FAILED = "failed"

SAMPLE_ID = "ragstone.sample.id"
JUDGE = "ragstone.judge.model"
RATE = "ragstone.sampling.rate"
"""The probability with which the sample was chosen."""
CHOSEN_BY = "ragstone.sampling.chosen_by"
"""What chose it: "rate", or a rule's name."""
