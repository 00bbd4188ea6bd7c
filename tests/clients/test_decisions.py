"""Decision models over HTTP: a loopback server that speaks OpenAI's form and System One's, rightly and wrongly."""

import json
import re

import pytest

from ragstone import Faithfulness, Sample, evaluate
from ragstone.clients import AnswerError, OpenAIDecisions, SystemOne
from ragstone.judge_names import RegistryError, make_llm
from ragstone.testing import DecisionContract

from ..support.command import command  # noqa: TID252
from ..support.openai_server import Answer  # noqa: TID252 - under importlib mode tests are no package

SAMPLE = Sample(retrieved_contexts=["Ann ran."], response="Ann ran. Bob sat.")
FORMS = ["openai", "systemone"]


def asked(body):
    """The choices by question, in either form."""
    questions = body["questions"]
    if isinstance(questions, list):
        return {each["name"]: [choice["value"] for choice in each["choices"]] for each in questions}
    return {name: list(each["criteria"]) for name, each in questions.items()}


def probabilities(choices, p=0.75):
    first, *others = choices
    return {first: p, **dict.fromkeys(others, (1 - p) / len(others))}


def openai_answer(name, shares):
    listed = [{"value": value, "probability": p} for value, p in shares.items()]
    return {"type": "choice", "name": name, "choice": listed[0]["value"], "confidence": 0.5, "probabilities": listed}


def reply(body, change=lambda answers: answers):
    """A reply in the form of the request; `change` is made to the answers, of which each is named."""
    shares = {name: probabilities(choices) for name, choices in asked(body).items()}
    if isinstance(body["questions"], list):
        answers = change([openai_answer(name, each) for name, each in shares.items()])
    else:
        answers = change({name: {"type": "choice", "probabilities": each} for name, each in shares.items()})
    return {"model": body["model"], "answers": answers, "usage": {"input_tokens": 20, "output_tokens": 3}}


@pytest.fixture
def client(openai_server):
    clients = []

    def made(form, answer=reply, **options):
        server = openai_server(lambda body: answer(body) if isinstance(answer(body), Answer) else Answer(answer(body)))
        if form == "openai":
            model = OpenAIDecisions("luna", base_url=server.url, **options)
        else:
            model = SystemOne(server.url, "jev", **options)
        clients.append(model)
        return server, model

    yield made
    for each in clients:
        each.close()


@pytest.mark.parametrize("form", FORMS)
class TestContract(DecisionContract):
    @pytest.fixture(autouse=True)
    def _made(self, client, form):
        self.made = client(form)[1]

    def model(self):
        return self.made


@pytest.mark.parametrize("form", FORMS)
def test_what_goes_out_and_comes_back(client, form):
    server, model = client(form, api_key="sk-mine")
    outcome = Faithfulness(llm=model).score(SAMPLE)
    assert (outcome.value, outcome.usage.llm_calls) == (0.75, 1)
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (20, 3)
    (seen,) = server.seen
    assert seen.headers["authorization"] == "Bearer sk-mine"
    assert seen.path.endswith("/decisions" if form == "openai" else "/systemone")
    assert list(asked(seen.body).values()) == [["yes", "no"], ["yes", "no"]]
    text = seen.body["input"] if form == "openai" else json.dumps(seen.body["state"])
    assert "Ann ran." in text
    assert "Bob sat." not in text, "an item is in its question alone"
    assert "sk-mine" not in repr(model)


def without_first(answers):
    return answers[1:] if isinstance(answers, list) else dict(list(answers.items())[1:])


def with_another(answers):
    if isinstance(answers, list):
        return [*answers, openai_answer("other", {"yes": 0.5, "no": 0.5})]
    return {**answers, "other": {"probabilities": {"yes": 0.5, "no": 0.5}}}


def with_shares(shares):
    def change(answers):
        if isinstance(answers, list):
            return [openai_answer(answers[0]["name"], shares), *answers[1:]]
        first = next(iter(answers))
        return {**answers, first: {"probabilities": shares}}

    return change


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_first, "did not answer question 1"),
        (with_another, "that was not asked"),
        (with_shares({"yes": 0.9, "no": 0.9}), "do not add up to 1"),
        (with_shares({"yes": "1", "no": "0"}), "not a number"),
    ],
)
def test_answers_that_cannot_be_used_are_no_number(client, form, change, said):
    _, model = client(form, lambda body: reply(body, change))
    outcome = Faithfulness(llm=model).score(SAMPLE)
    assert outcome.reason == "judge_unparseable"
    assert said in outcome.detail


def test_a_question_that_is_refused_is_refused_alone(client):
    def refused(answers):
        return [{"type": "refusal", "name": answers[0]["name"]}, *answers[1:]]

    _, model = client("openai", lambda body: reply(body, refused))
    outcome = Faithfulness(llm=model).score(SAMPLE)
    assert (outcome.reason, "refused question 1" in outcome.detail) == ("judge_unparseable", True)


@pytest.mark.parametrize(
    ("form", "change", "said"),
    [
        (
            "openai",
            lambda text: text.replace('"probability": 0.75', '"probability": 0.1, "probability": 0.75'),
            "twice",
        ),
        ("openai", lambda text: text.replace('"answers": [', '"answers": [], "answers": ['), "'answers' stands twice"),
        ("openai", lambda text: text.replace('"name": "2"', '"name": "1"'), "'1' is given twice"),
        ("systemone", lambda text: text.replace('"yes": 0.75', '"yes": 0.1, "yes": 0.75'), "'yes' stands twice"),
        ("systemone", lambda text: text.replace('"2": {', '"1": {'), "the key '1' stands twice"),
        ("systemone", lambda text: text.replace('"probabilities"', '"shares"'), "'probabilities' is missing"),
        ("systemone", lambda text: re.sub(r'"probabilities": {.*?}', '"probabilities": [["yes", 1]]', text), "form"),
        ("openai", lambda _: '{"error": {"message": "overloaded"}}', "without 'answers': overloaded"),
        ("systemone", lambda _: '{"error": "overloaded"}', "without 'answers': overloaded"),
    ],
)
def test_what_is_said_twice_or_an_error_in_a_200_is_no_answer(client, form, change, said):
    _, model = client(form, lambda body: Answer(change(json.dumps(reply(body))).encode()))
    with pytest.raises(AnswerError, match=said):
        Faithfulness(llm=model).score(SAMPLE)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"answers": [7]}',
        b'{"answers": {"1": {"probabilities": [1]}}}',
        b'{"answers": [{"type": "choice", "name": "1", "probabilities": {"yes": 1}}]}',
        b'{"answers": [{"type": "score", "name": "1", "score": 1}]}',
        b'{"answers": [{"type": "refusal", "name": "1"}, {"type": "refusal", "name": "1"}]}',
    ],
)
def test_a_body_of_another_form_is_an_error_and_never_a_number(client, form, body):
    _, model = client(form, lambda _: Answer(body))
    with pytest.raises(AnswerError):
        Faithfulness(llm=model).score(SAMPLE)
    (record,) = evaluate([SAMPLE], [Faithfulness(llm=model)], progress=False).results()
    assert record.outcome.reason == "judge_error"


def test_by_name(openai_server):
    server = openai_server(lambda body: Answer(reply(body)), models=["first"])
    named = {
        f"openai-decisions:luna@{server.url}": "OpenAIDecisions('luna'",
        f"systemone:jev@{server.url}": "SystemOne('jev'",
        f"systemone:{server.url}": "SystemOne('first'",
    }
    for name, shown in named.items():
        with_name = make_llm(name)
        assert repr(with_name).startswith(shown)
        assert Faithfulness(llm=name).score(SAMPLE).value == 0.75
        with_name.close()
    with pytest.raises(RegistryError, match="write systemone:URL or systemone:MODEL@URL"):
        make_llm("systemone:jev")


def test_options_are_checked():
    with pytest.raises(ValueError, match="most_questions: 0"):
        SystemOne("http://127.0.0.1:1", "jev", most_questions=0)


def test_doctor_asks_it_too(openai_server):
    server = openai_server(lambda body: Answer(reply(body)))
    done = command("doctor", "--llm", f"systemone:jev@{server.url}")
    assert "jev decides, {'yes': 0.75, 'no': 0.25}, and writes no texts" in done.output


def test_a_dry_run_counts_its_requests_and_the_writers(tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps({"question": "Who?", "contexts": ["Ann. Bob."], "answer": "Ann."}))
    named = ["--llm", "systemone:jev@http://127.0.0.1:1", "--writer", "openai:gpt", "--embedder", "openai:e"]
    done = command("score", tmp_path / "rows.jsonl", "--metric", "rag", "--dry-run", *named)
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line}
    assert [rows[name][1] for name in ("faithfulness", "context_relevancy", "response_completeness")] == ["1", "1", "2"]
