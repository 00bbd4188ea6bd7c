"""Tokens: `result.total_tokens()` counts those of any judge, so that these parsers have no effect."""


def get_token_usage_for_openai(*_: object) -> None:
    """Do nothing."""


get_token_usage_for_anthropic = get_token_usage_for_azure_ai = get_token_usage_for_bedrock = get_token_usage_for_openai
