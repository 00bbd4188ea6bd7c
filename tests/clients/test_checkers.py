"""Claim checkers by name: Bespoke-MiniCheck on a loopback server, as Ollama's page has it, and modules of one's own."""

import json
import math

import pytest

from ragstone import BaseClaimChecker, Faithfulness, Sample, evaluate
from ragstone.clients import AnswerError, MiniCheck
from ragstone.judge_names import RegistryError, make_llm
from ragstone.testing import ClaimCheckerContract

from ..support.command import command  # noqa: TID252 - under importlib mode tests are no package
from ..support.openai_server import Answer, chat, error  # noqa: TID252

DOCUMENT = "A group of students gather in the school library to study for their upcoming final exams."
SAMPLE = Sample(
    retrieved_contexts=[DOCUMENT],
    response="The students are preparing for an examination. The students are on vacation.",
)
ROW = {"question": "What do they do?", "contexts": SAMPLE.retrieved_contexts, "answer": SAMPLE.response}


def said(body):
    return "No" if body["messages"][-1]["content"].endswith("vacation.") else "Yes"


def with_logprobs(body):
    """The first word is 0.9 probable, as servers say it; the tokens of other words have the rest."""
    first = said(body)
    others = [{"token": "No" if first == "Yes" else "Yes", "logprob": math.log(0.08)}]
    top = [{"token": first, "logprob": math.log(0.9)}, *others, {"token": "The", "logprob": math.log(0.02)}]
    return chat(first, logprobs={"content": [{**top[0], "top_logprobs": top}]})


@pytest.fixture
def served(openai_server):
    checkers = []

    def made(reply, **options):
        server = openai_server(reply, models=["bespoke-minicheck"])
        checkers.append(MiniCheck("bespoke-minicheck", base_url=server.url, **options))
        return server, checkers[-1]

    yield made
    for each in checkers:
        each.close()


class TestContract(ClaimCheckerContract):
    @pytest.fixture(autouse=True)
    def _made(self, served):
        self.made = served(with_logprobs)[1]

    def checker(self):
        return self.made


def test_each_claim_goes_out_in_the_form_of_the_models_page(served):
    server, checker = served(with_logprobs)
    outcome = Faithfulness(llm=checker).score(SAMPLE)
    assert [verdict.probability for verdict in outcome.verdicts] == pytest.approx([0.9 / 0.98, 0.08 / 0.98])
    assert outcome.usage.llm_calls == len(server.bodies) == 2
    asked = {body["messages"][0]["content"]: body for body in server.bodies}
    assert [body["messages"][1:] for body in server.bodies] == [[], []], "no instructions beside it"
    assert set(asked) == {
        f"Document: {DOCUMENT}\nClaim: The students are preparing for an examination.",
        f"Document: {DOCUMENT}\nClaim: The students are on vacation.",
    }
    assert all(body["logprobs"] and "response_format" not in body for body in server.bodies)


@pytest.mark.parametrize("refuses", [False, True])
def test_without_log_probabilities_the_word_counts(served, refuses):
    def reply(body):
        return error(400, "logprobs are not supported") if refuses and "logprobs" in body else said(body) + "."

    _, checker = served(reply)
    assert list(checker.check(DOCUMENT, SAMPLE.response.split(". "))) == [1.0, 0.0]


@pytest.mark.parametrize("text", ["", "Maybe", "Yes and no", "Yes\n\nNo"])
def test_another_word_is_an_error_and_no_number(served, text):
    _, checker = served(lambda _: chat(text))
    with pytest.raises(AnswerError, match="neither Yes nor No"):
        Faithfulness(llm=checker).score(SAMPLE)
    (record,) = evaluate([SAMPLE], Faithfulness(llm=checker), progress=False).results()
    assert record.outcome.reason == "judge_error"


def test_a_run_tries_again_what_the_server_puts_off(served):
    put_off = []

    def reply(body):
        if len(put_off) < 2:
            put_off.append(body)
            return Answer({"error": {"message": "busy"}}, status=429, headers={"retry-after-ms": "1"})
        return with_logprobs(body)

    server, checker = served(reply)
    report = evaluate([SAMPLE], Faithfulness(llm=checker), progress=False)
    assert next(iter(report.results())).outcome.breakdown["supported"] == 1.0
    assert report.spent.llm_calls == len(server.bodies) == 4, "the run tries again, not the client"


def test_the_command_takes_it_by_name(served, tmp_path):
    server, _ = served(with_logprobs)
    rows, results = tmp_path / "rows.jsonl", tmp_path / "results.jsonl"
    rows.write_text(json.dumps(ROW))
    name = f"checker:bespoke-minicheck@{server.url}"
    planned = command("score", rows, "--metric", "faithfulness", "--llm", name, "--dry-run")
    assert next(line.split() for line in planned.stdout.splitlines() if "faithfulness" in line)[1] == "2"
    assert not server.bodies
    done = command("score", rows, "--metric", "faithfulness", "--llm", name, "--out", results)
    assert done.exit_code == 0, done.output
    assert json.loads(results.read_text().splitlines()[-1])["judge"] == "bespoke-minicheck"
    assert "bespoke-minicheck checks claims, {'yes': 0.9" in command("doctor", "--llm", name).output
    refused = command("score", rows, "--metric", "rag", "--llm", name)
    assert (refused.exit_code, "is a claim checker, which cannot answer" in refused.stderr) == (2, True)
    refused = command("score", rows, "--metric", "faithfulness", "--llm", "local", "--writer", name)
    assert "'bespoke-minicheck' is a claim checker, which writes no texts" in refused.stderr


def by_words(text, claims):
    return [float(claim.split()[-1] in text) for claim in claims]


async def at_once(text, claims):
    return by_words(text, claims)


class ByWords(BaseClaimChecker):
    model = "by-words"
    check = staticmethod(by_words)


OBJECT = ByWords()
NEITHER = 7


def make():
    return OBJECT


@pytest.mark.parametrize("name", ["by_words", "at_once", "ByWords", "OBJECT", "make"])
def test_an_object_or_a_function_of_a_module(name):
    metric = Faithfulness(llm=f"checker:{__name__}:{name}")
    texts = Sample(retrieved_contexts=["They study exams."], response="They sit exams. They sleep.")
    (record,) = evaluate([texts], metric, progress=False).results()
    assert record.outcome.breakdown["supported"] == 1.0
    assert record.judge == (f"{__name__}:{name}" if name in ("by_words", "at_once") else "by-words")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bespoke-minicheck", "Did you mean checker:bespoke-minicheck@"),
        ("checker:minicheck", "write checker:MODEL@URL or checker:module:name"),
        ("checker:http://127.0.0.1:1", "write checker:MODEL@URL or checker:module:name"),
        ("checker:no_such_module:it", "cannot be loaded"),
        (f"checker:{__name__}:NEITHER", "int has neither check nor acheck"),
        ("checker:m@http://127.0.0.1:1?seed=7", "seed: only openai:MODEL"),
    ],
)
def test_a_name_that_names_no_checker(name, said):
    with pytest.raises(RegistryError, match=said):
        make_llm(name)
