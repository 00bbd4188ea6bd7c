"""Your judge and your metrics: every recipe imports this module."""

from ragstone import Faithfulness, ResponseCompleteness, evaluate
from ragstone.clients import OpenAICompatible

judge = OpenAICompatible("gpt-5-mini")
METRICS = [Faithfulness(llm=judge, threshold=0.7), ResponseCompleteness(llm=judge)]


def outcomes(**fields):
    """Return a Score or an Unscored for each metric."""
    return [record.outcome for record in evaluate([fields], METRICS, progress=False)]
