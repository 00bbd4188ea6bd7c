"""`LangChainDecisions`: a LangChain decision model as a judge."""

from functools import partial
from typing import Any, cast

from langchain_core.runnables import Runnable

from ragstone.background import Async, Sync
from ragstone.judge import BaseDecisionModel, DecisionReply, DecisionRequest
from ragstone.options import Count, checked
from ragstone.plain import as_count, as_dict
from ragstone_langchain.shared_model import (
    LangChainModel,
    input_limit,
    is_decision_model,
    judge_config,
)


class LangChainDecisions(LangChainModel[Runnable[Any, Any]], BaseDecisionModel):
    """A LangChain decision model as a judge: a `BaseDecisionModel` (langchain-core 1.8), or a runnable around one.

    The texts are the state; each question is a `Choice`. The model object is never changed. Judge calls stay out of
    the app's traces.

    Args:
        model: The decision model; also `with_retry`, `with_fallbacks` and the like of one.
        most_questions: Questions in one request at most; providers take 64 to 400.
        max_input_tokens: The longest request that the model takes, in tokens; None: from its `profile`, else unknown.
        name: For logs and cache keys; None: the model's name from the object, else its class.
        identity: A text for journals; change it whenever you change the model object's settings.
        trace: True lets the app's callbacks and tracers see the judge's runs, tagged "ragstone:judge".

    Raises:
        TypeError: `model` is no decision model of LangChain's.
        ValueError: An option is out of range.

    Example:
        >>> from langchain_core.decisions import BaseDecisionModel, ClassifierResponse  # doctest: +SKIP
        >>> judge = LangChainDecisions(my_decision_model)  # doctest: +SKIP
        >>> Faithfulness(llm=judge).score(sample).value  # doctest: +SKIP
        0.75
    """

    def __init__(
        self,
        model: Runnable[Any, Any],
        *,
        most_questions: int = 64,
        max_input_tokens: int | None = None,
        name: str | None = None,
        identity: str | None = None,
        trace: bool = False,
    ) -> None:
        if not is_decision_model(model):
            raise TypeError(
                f"model: {type(model).__name__} is no decision model of LangChain's (langchain_core.decisions); for a "
                "chat model take LangChainLLM"
            )
        super().__init__(model, name=name, identity=identity, trace=trace)
        self.most_questions = checked("most_questions", most_questions, Count)
        self.max_input_tokens = checked("max_input_tokens", max_input_tokens, Count | None) or input_limit(model)

    def decide(self, request: DecisionRequest, /) -> DecisionReply:
        """Answer one request by the model's `invoke`, blocking; raise what the model raises."""
        return _decision_reply(self._invoke(*self._calls(request)))

    async def adecide(self, request: DecisionRequest, /) -> DecisionReply:
        """Answer one request by the model's `ainvoke` on the running event loop; otherwise as `decide`."""
        return _decision_reply(await self._ainvoke(*self._calls(request)))

    def _calls(self, request: DecisionRequest) -> tuple[Sync[object], Async[object]]:
        from langchain_core.decisions import Choice

        questions = {
            name: Choice(instructions=question.instruction, criteria=dict.fromkeys(question.choices))
            for name, question in request.questions.items()
        }
        asked = {"state": dict(request.texts), "questions": questions}
        config = judge_config(request.task, trace=self._trace)
        model = self._silent()
        return partial(model.invoke, asked, config), partial(model.ainvoke, asked, config)


def _decision_reply(response: object) -> DecisionReply:
    answers = cast("dict[str, object]", getattr(response, "answers", {}))
    used = as_dict(getattr(response, "usage", None))
    return DecisionReply(
        {name: getattr(answer, "probabilities", None) for name, answer in answers.items()},
        as_count(used.get("input_tokens")),
        as_count(used.get("output_tokens")),
    )
