"""A provider's real chat model over HTTP: what goes out, what comes back, and nobody's client on two loops."""

import asyncio
import gc
import json
import logging
import subprocess
import sys

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.callbacks import BaseCallbackHandler
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI

from ragstone import ContextRelevancy, Faithfulness, LLMRequest, Sample
from ragstone.judging.reply import listing, record, whole
from ragstone.metrics.fitted import SUPPORTED, length
from ragstone_langchain import LangChainLLM

from ..support.openai_server import NO_SYSTEM, Answer, chat, error  # noqa: TID252

REQUEST = LLMRequest("demo.ids", "Answer.", "Which?", record(ids=listing(whole(1, 2))))


def openai(server, **settings) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "gpt-4o", "base_url": server.url, "api_key": "k", "max_retries": 0, **settings})


def in_loop(server, coroutine):
    """Run a coroutine in a loop of its own, and close the server's clients that langchain-openai keeps beyond it."""

    async def run():
        try:
            return await coroutine
        finally:
            # not isinstance, which asks the object and so wakes proxies, some of what is no longer there
            for client in [thing for thing in gc.get_objects() if type(thing) is AsyncOpenAI]:
                if str(client.base_url).startswith(server.url):  # another's belongs to another loop
                    await client.close()

    return asyncio.run(run())


def both(server, judge):
    return [judge.generate(REQUEST), in_loop(server, judge.agenerate(REQUEST))]


def test_the_schema_is_the_response_format(openai_server) -> None:
    server = openai_server(lambda body: '{"ids": [1]}')
    judge = LangChainLLM(openai(server, temperature=0.25))
    for reply in both(server, judge):
        assert (reply.text, reply.input_tokens, reply.output_tokens) == ('{"ids": [1]}', 11, 7)
    for body in server.bodies:
        assert body["response_format"]["json_schema"]["schema"]["properties"] == REQUEST.schema["properties"]
        assert body["messages"] == [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Which?"}]
        assert body["temperature"] == 0.25, "the model object's own"
        assert "n" not in body
        assert "stop" not in body


def test_a_server_that_refuses_the_format_is_asked_without_and_remembered(openai_server, caplog) -> None:
    refusal = Answer(
        {"detail": [{"loc": ["body", "response_format"], "msg": "extra fields not permitted"}]}, status=422
    )
    server = openai_server(lambda body: refusal if "response_format" in body else '{"ids": [1]}')
    with caplog.at_level(logging.WARNING, "ragstone_langchain"):
        assert [reply.text for reply in both(server, LangChainLLM(openai(server)))] == ['{"ids": [1]}'] * 2
    assert ["response_format" in body for body in server.bodies] == [True, False, False]
    assert json.dumps(REQUEST.schema) in server.bodies[-1]["messages"][-1]["content"]
    (said,) = caplog.messages
    assert "refused structured_output, going on without" in said


def test_a_format_that_was_taken_once_is_left_out_of_the_refused_request_alone(openai_server) -> None:
    good, refusal = '{"ids": [1]}', error(400, "Expected at most 1000 enum values in a schema", param="response_format")
    answers = iter([good, refusal, good, good])
    server = openai_server(lambda body: next(answers))
    judge = LangChainLLM(openai(server))
    assert [judge.generate(REQUEST).text for _ in range(3)] == [good] * 3
    assert ["response_format" in body for body in server.bodies] == [True, True, False, True]
    assert (judge.left_out, [*judge.left_out_once]) == ({}, ["structured_output"])


def test_a_bad_moment_or_another_error_of_the_server_does_not_end_structured_output(openai_server) -> None:
    too_long = error(400, "maximum context length is 8192 tokens, as text")
    answers = iter([error(500, "internal error in function worker"), '{"ids": [1]}', too_long, '{"ids": [1]}'])
    server = openai_server(lambda body: next(answers))
    judge = LangChainLLM(openai(server))
    assert judge.generate(REQUEST).text == '{"ids": [1]}'
    with pytest.raises(Exception, match="maximum context length") as raised:
        judge.generate(REQUEST)
    assert raised.value.status_code == 400, "the provider's own error, and no second layer of retries"
    assert judge.generate(REQUEST).text == '{"ids": [1]}'
    assert ["response_format" in body for body in server.bodies] == [True, False, True, True]


def test_a_configurable_model_whose_callbacks_hear_no_judge(openai_server) -> None:
    heard = []

    class Listener(BaseCallbackHandler):
        def on_chat_model_start(self, serialized, messages, **kwargs):
            heard.append(messages[0][-1].content)

    server = openai_server(lambda body: '{"ids": [1]}')
    settings = {"model_provider": "openai", "base_url": server.url, "api_key": "k", "callbacks": [Listener()]}
    model = init_chat_model("gpt-4o", configurable_fields=("temperature",), **settings)
    assert [reply.text for reply in both(server, LangChainLLM(model))] == ['{"ids": [1]}'] * 2
    assert all("response_format" in body for body in server.bodies)
    model.invoke("the app's own")
    assert heard == ["the app's own"]
    with pytest.raises(TypeError, match="model"):
        LangChainLLM(init_chat_model(configurable_fields="any")).generate(REQUEST)


def test_a_reply_that_was_cut_off_is_one_that_cannot_be_read(openai_server) -> None:
    answer = chat('{"ids": [1')
    answer["choices"][0]["finish_reason"] = "length"
    server = openai_server(lambda body: answer)
    metric = ContextRelevancy(llm=LangChainLLM(openai(server)))
    outcome = metric.score(Sample(user_input="Which?", retrieved_contexts=["This. That."]))
    assert (outcome.reason, outcome.usage.llm_calls) == ("judge_unparseable", 1)
    assert "cut off (length)" in outcome.detail
    assert "raise max_tokens" in outcome.detail
    assert "it stopped at 7 tokens" in outcome.detail
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (11, 7)


def test_log_probabilities_reach_the_metric(openai_server) -> None:
    top = [{"token": "yes", "logprob": -0.1, "bytes": None}, {"token": "no", "logprob": -2.4, "bytes": None}]
    server = openai_server(lambda body: chat("yes", logprobs={"content": [{**top[0], "top_logprobs": top}]}))
    judge = LangChainLLM(openai(server, logprobs=True, top_logprobs=5), asking="one_by_one", gives_probabilities=True)
    outcome = Faithfulness(llm=judge).score(Sample(retrieved_contexts=["This. That."], response="This."))
    assert outcome.version.endswith("+expected"), "as the user declares it"
    (answer,) = SUPPORTED.answers([{"supported": 2.3, "length": length("This. That.")}])
    assert outcome.value == pytest.approx(answer.probability("yes"), abs=1e-3)


def test_one_judge_in_several_loops_one_after_the_other(openai_server) -> None:
    """Its client keeps connections of the loop before. In a process of its own: nobody can close them any more."""
    server = openai_server(lambda body: '{"ids": [1]}')
    code = f"""
import asyncio
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from ragstone import LLMRequest
from ragstone_langchain import LangChainEmbedder, LangChainLLM
judge = LangChainLLM(ChatOpenAI(model="gpt-4o", base_url={server.url!r}, api_key="k", max_retries=0))
for _ in range(3):
    print(asyncio.run(judge.agenerate(LLMRequest("demo.ids", "Answer.", "Which?", {{}}))).text)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, len(server.bodies)) == ('{"ids": [1]}\n' * 3, 3), done.stderr


def without_system(status, problem):
    def reply(body):
        roles = [message["role"] for message in body["messages"]]
        return chat('{"ids": [1]}') if roles == ["user"] else Answer(problem, status=status)

    return reply


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize(("status", "problem"), NO_SYSTEM)
def test_a_judge_without_a_system_role_gets_the_instructions_in_the_users_message(
    openai_server, status, problem, structured
) -> None:
    for half in ("generate", "agenerate"):
        server = openai_server(without_system(status, problem))
        judge = LangChainLLM(openai(server), structured_output=structured)
        replies = [getattr(judge, half)(REQUEST) for _ in range(2)]
        if half == "agenerate":
            replies = [in_loop(server, reply) for reply in replies]
        assert [reply.text for reply in replies] == ['{"ids": [1]}'] * 2
        *_, first, second = server.bodies
        assert first["messages"] == second["messages"]
        assert first["messages"][0]["content"].startswith("Answer.\n\nWhich?")
        assert ("response_format" in first) == structured
        assert [len(body["messages"]) for body in server.bodies].count(1) == 2, "asked without one from then on"
