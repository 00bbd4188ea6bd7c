"""Whether an error says that the judge takes no system message, or only quotes what it was asked."""

import pytest

from ragstone import LLMRequest
from ragstone.adapters.chat_models import refuses_system

ASKED = LLMRequest("demo.ask", "Answer.", "Is it?", {})
REFUSALS = [
    "System role not supported",  # vLLM, Gemma 2
    "Template error: invalid operation: System role not supported (in <string>:1)",  # TGI
    "Conversation roles must alternate user/assistant/user/assistant/...",  # Mistral v0.1
    "Only user and assistant roles are supported!",  # Mistral v0.2
    "Unsupported value: 'messages[0].role' does not support 'system' with this model.",  # o1-mini
    "Developer instruction is not enabled for models/gemma-3-27b-it",  # Gemini
    "An error occurred (ValidationException): This model doesn't support system messages. Try again without one.",
    "1 validation error detected: Value 'system' at 'messages.1.member.role' failed to satisfy constraint",  # Bedrock
    "SystemMessages are not yet supported! To convert it, set convert_system_message_to_human to True",  # LangChain
    "Invalid role: 'system'",
    "The system role is not supported by this model.",
    "role 'system' is not allowed",
]
OTHERS = [
    "This model's maximum context length is 8192 tokens, including the system message.",
    "Your input was flagged by the moderation system.",
    "The system is overloaded",
    "temperature is not supported",
    "Not supported: response_format",
    "unknown model: system-7b",
    "",
]


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refusal_is_known_by_its_words(message):
    assert refuses_system(message, ASKED)
    assert not refuses_system(message, LLMRequest("demo.ask", "", "Is it?", {})), "there was none to refuse"


@pytest.mark.parametrize("message", OTHERS)
def test_other_errors_are_not_about_the_system_message(message):
    assert not refuses_system(message, ASKED)


@pytest.mark.parametrize("message", REFUSALS)
@pytest.mark.parametrize("quoted", [str, repr, lambda text: text.replace(" ", "\\n"), lambda text: text.upper()[:120]])
def test_what_stands_in_the_prompt_may_be_quoted_from_there(message, quoted):
    for asked in (LLMRequest("d", "Answer.", f"It says: {message}", {}), LLMRequest("d", f"Not {message}", "?", {})):
        assert not refuses_system(f"Your input was flagged: {quoted(message)}", asked)
