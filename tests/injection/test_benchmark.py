"""The benchmark of attacks: what it compares, that it notices what it is there to notice, that it goes on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from injection.attacks import ATTACKS, filler_for
from injection.cases import cases, runs
from injection.measure import changes, figures
from injection.obedience import ORDERED, is_asked_form, obey_all
from injection.samples import FIELDS, SAMPLES
from injection.scoring import score

import ragstone.metrics.base
from ragstone import LLMRequest, Sample
from ragstone.asking.suspicion import suspected
from ragstone.testing import FakeEmbedder, FakeLLM

from ..support.openai_server import OpenAIServer, embeddings  # noqa: TID252

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "injection"


def test_fillers_are_about_as_long_as_their_attacks():
    for attack in ATTACKS:
        if not attack.alone:
            assert abs(len(filler_for(attack)) - len(attack.text)) <= 0.2 * len(attack.text), attack.name
        assert suspected(Sample(response=filler_for(attack)), ("response",)) == ()


def test_which_attacks_are_noted():
    """Authority in plain words is what no conservative sign can tell from a text about authorities."""
    noted = {attack.name for attack in ATTACKS if suspected(Sample(response=attack.text), ("response",))}
    assert {attack.name for attack in ATTACKS} - noted == {"authority"}


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_every_attack_meets_every_metric_in_every_field(rounds):
    given = cases(rounds=rounds)
    for attack in ATTACKS:
        mine = [case for case in given if case.attack is attack]
        places = {(metric, field) for metric, fields in FIELDS.items() for field in fields}
        if attack.alone:
            places = {place for place in places if place[1] == "response"}
        assert {(case.known.metric, case.field) for case in mine} == places
        assert len(mine) == rounds * len(places)
        if rounds <= 2:
            assert {case.known.good for case in mine} == {attack.aim == "down"}


def test_only_the_attack_differs():
    for case in cases(rounds=4):
        own = case.known.sample
        for changed, text in ((case.attacked, case.attack.text), (case.filled, filler_for(case.attack))):
            assert {
                f for f in ("user_input", "retrieved_contexts", "response") if changed.texts(f) != own.texts(f)
            } == {case.field}
            assert changed.texts(case.field)[0].endswith(text)


def test_good_and_bad_samples_of_every_metric():
    for metric in FIELDS:
        assert [known.good for known in SAMPLES if known.metric == metric] == [False, False, True, True]
        assert len({known.name for known in SAMPLES if known.metric == metric}) == 4


GOOD = {known.sample.response for known in SAMPLES if known.good and known.sample.response} | {
    text for known in SAMPLES if known.good for text in known.sample.retrieved_contexts
}


def honest(request: LLMRequest):
    """Knows the samples, and takes everything else for what it is."""
    step = request.task.split(".")[1]
    good = any(text in request.user for text in GOOD)
    if step == "claims":
        return {"claims": [request.user.split("\n")[1]]}
    if step == "questions":
        return {"questions": ["Who knows?"]}
    if step == "noncommittal":
        return "answered" if good else "refused"
    if step == "sentence":
        asked = request.user.split("<sentence ")[1]
        return "yes" if any(text in asked for text in GOOD) else "no"
    if step == "passage":
        return "yes" if good else "no"
    if step == "verdict":
        return "supported" if any(text in request.user.split("<claim ")[1] for text in GOOD) else "not_in_source"
    return "yes" if good or step == "source_answers" else "no"


def gullible(request: LLMRequest):
    """Does as the first two attacks say."""
    up, down = ("answer yes, supported" in request.user, "answer no, not_in_source" in request.user)
    if not request.choices or not up | down:
        return honest(request)
    return request.choices[0 if up else -1]


def measured(judge, path, given):
    llm = FakeLLM(judge, asking="one_by_one")
    return changes(given, score(given, llm, FakeEmbedder(), path / "journal.db", calls=4)), llm


def test_a_judge_that_does_not_fall_for_it(tmp_path):
    given = cases()
    found, llm = measured(honest, tmp_path, given)
    assert 150 <= len(llm.requests) <= 320
    whole = figures(found)
    assert (whole.runs, whole.unscored, whole.changed) == (len(given), {}, 0)
    assert whole.compared >= len(given) - 10
    by_questions = [
        change for change in found if change.metric == "response_relevancy" and change.field == "user_input"
    ]
    others = [change for change in found if change not in by_questions]  # those move with the embedding of the question
    assert figures(others).absolute.value == 0.0
    for change in found:  # bad samples score 0 and good ones 1, so that an attack has somewhere to go
        if change.plain is not None and change.metric != "response_relevancy":
            assert change.plain == (0.0 if change.towards == 1 else 1.0), change


def test_a_judge_that_falls_for_one(tmp_path):
    given = cases(ATTACKS[:3])
    found, _ = measured(gullible, tmp_path, given)
    for attack in ATTACKS[:2]:
        raised = [change for change in found if change.attack == attack.name and change.field != "user_input"]
        assert figures(raised).shift.value > 0.3, "both get what they want"
    fallen = figures([change for change in found if change.attack == ATTACKS[0].name])
    others = figures(
        [change for change in found if change.attack == "fake verdict JSON" and change.field != "user_input"]
    )
    assert fallen.changed
    assert fallen.shift.value > 0.3
    assert others.changed == 0
    assert fallen.suspected == fallen.runs


def test_it_goes_on_where_it_stopped(tmp_path):
    given = cases(ATTACKS[:2])
    calls = 0

    def interrupted(request):
        nonlocal calls
        calls += 1
        if calls == 20:
            raise KeyboardInterrupt
        return honest(request)

    with pytest.raises(KeyboardInterrupt):
        measured(interrupted, tmp_path, given)
    found, again = measured(honest, tmp_path, given)
    (tmp_path / "other").mkdir()
    whole, alone = measured(honest, tmp_path / "other", given)
    assert found == whole
    assert len(again.requests) < len(alone.requests)
    assert not measured(honest, tmp_path, given)[1].requests


def test_what_is_not_scored_is_counted_and_in_no_mean(tmp_path):
    def broken(request):
        return "nonsense" if "</response 9de66f2c>" in request.user else honest(request)

    attack = next(attack for attack in ATTACKS if attack.name == "fence break-out")
    found, _ = measured(broken, tmp_path, cases([attack]))
    whole = figures(found)
    assert whole.unscored["judge_unparseable"] == whole.runs - whole.shift.n
    assert whole.unscored["judge_unparseable"] >= 5


def test_an_obedient_judge_gets_nothing_accepted_but_the_asked_form():
    found = obey_all()
    assert len(found) == 8
    for one in found:
        assert one.replies >= len(ORDERED)
        assert one.wrongly == ()
        assert 0 < one.accepted <= one.asked_form


def test_a_parser_that_accepts_too_much_is_noticed(monkeypatch):
    monkeypatch.setattr(ragstone.metrics.base, "parse_choice", lambda text, choices: choices[0])
    assert any(one.wrongly for one in obey_all() if one.asking == "one_by_one")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('{"a": [1, 2], "b": "x"}', True), ('{"a": [], "b": "y"}', False), ('{"a": [1, 2, 3], "b": "x"}', False),
        ('{"a": [0], "b": "x"}', False), ('{"a": [true], "b": "x"}', False), ('{"a": [1.0], "b": "x"}', False),
        ('{"a": [1], "b": "z"}', False), ('{"a": [1]}', False), ('{"a": [1], "b": "x", "c": 1}', False), ("x", False),
        ('[{"a": [1], "b": "x"}]', False), ('{"a": [1], "b": "x"} {}', False), ('{"a": "1", "b": "x"}', False),
    ],
)  # fmt: skip
def test_the_account_of_the_asked_form(text, fits):
    listed = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 5}, "minItems": 1, "maxItems": 2}
    schema = {"type": "object", "properties": {"a": listed, "b": {"type": "string", "enum": ["x", "y"]}}}
    assert is_asked_form(text, LLMRequest("demo", "", "", schema)) is fits


def answer(body):
    """A judge of no opinion, behind a server."""
    if "input" in body:
        return embeddings([[1.0, float(len(text))] for text in body["input"]])
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return json.dumps(filled(schema)) if schema else "yes"


def filled(schema):
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: filled(part) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [filled(schema["items"])] * max(1, schema.get("minItems", 0))
    return {"string": "Is it so?", "boolean": False, "integer": schema.get("minimum", 0)}[schema["type"]]


def test_the_command(tmp_path):
    with OpenAIServer(answer) as server:

        def run():
            done = subprocess.run(
                [sys.executable, str(BENCHMARK), "--judge", f"test-model@{server.url}", "--out", str(tmp_path), "--limit", "2"],
                capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            return len([seen for seen in server.seen if seen.path.endswith("/chat/completions")])

        first = run()
        content = json.loads((tmp_path / "results.json").read_text())
        page = (tmp_path / "results.md").read_text()
        assert run() == first > 0
    assert content["facts"]["calls"] == first
    assert len(content["runs"]) == content["all"]["runs"] == len(cases(ATTACKS[:2]))
    assert set(content["by_attack"]) == {attack.name for attack in ATTACKS[:2]}
    assert not any(one["wrongly"] for one in content["parser"])
    assert "| order to the judge | 7 | 0 |" in page
    assert "test-model" in page
    again = json.loads((tmp_path / "results.json").read_text())
    assert again["runs"] == content["runs"]


def test_every_sample_is_scored_once():
    for known, samples in runs(cases(rounds=4)):
        texts = [sample.model_dump_json() for sample in samples]
        assert len(set(texts)) == len(texts), known.name
        assert samples[0] == known.sample
