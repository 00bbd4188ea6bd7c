"""Tokens: `result.total_tokens()` counts those of any judge, so that these parsers have no effect."""

from ragstone_compat.ragas.missing import refuse as __getattr__  # noqa: F401 - for what is not there


def get_token_usage_for_openai(*_: object) -> None:
    """Do nothing."""


get_token_usage_for_anthropic = get_token_usage_for_azure_ai = get_token_usage_for_bedrock = get_token_usage_for_openai
