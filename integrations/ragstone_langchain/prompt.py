"""A request to the judge in the form that every LangChain model takes."""

from typing import Literal

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import PromptValue

from ragstone import LLMRequest


class JudgePrompt(PromptValue):
    """Messages for a chat model, one text for a text model: whichever stands at the end of the runnable.

    Several draws of one prompt differ in `draw`. LangChain's caches know a prompt by its messages or its text, and
    would answer the second draw with the first: so the draw stands in the message where no provider reads it, and
    at the end of a text, which has no such place.
    """

    system: str
    user: str
    draw: int = 0
    type: Literal["JudgePrompt"] = "JudgePrompt"

    def to_messages(self) -> list[BaseMessage]:
        """Return the instructions as a system message and the data as the user's."""
        draw = {"ragstone_draw": self.draw} if self.draw else {}
        return [SystemMessage(self.system), HumanMessage(self.user, response_metadata=draw)]

    def to_string(self) -> str:
        """Return instructions and data one after the other."""
        draw = f"\n\n(Draw {self.draw + 1}.)" if self.draw else ""
        return f"{self.system}\n\n{self.user}{draw}\n\n"


def judge_prompt(request: LLMRequest, user: str) -> JudgePrompt:
    """Return the prompt of a request, with `user` as what the user says."""
    return JudgePrompt(system=request.system, user=user, draw=request.sample_index)
