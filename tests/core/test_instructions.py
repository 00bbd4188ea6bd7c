"""Instructions of one's own: they reach the judge, they show in the version, and they change nothing else."""

import dataclasses
import pickle

import pytest

from ragstone import LLMRequest, Metric
from ragstone.asking.prompt import DATA_NOTICE

from .judges import drive, metrics, step, truth
from .test_prompts import SAMPLE

INDEXES = range(8)
BRACES = 'Mine. {unknown} {} %s {{x}} {"a": 1}'


def requests(metric):
    return [r for round_ in drive(metric, SAMPLE)[1] for r in round_ if isinstance(r, LLMRequest)]


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("index", INDEXES)
def test_they_stand_in_place_of_the_metric_s_own_and_nothing_else_changes(index, asking):
    plain = metrics(truth, asking)[index]
    for name in plain.prompts:
        changed = dataclasses.replace(plain, instructions={name: BRACES})
        for before, after in zip(requests(plain), requests(changed), strict=True):
            if step(before) == name:
                assert after.system == f"{BRACES}\n{DATA_NOTICE}"
                assert dataclasses.replace(after, system=before.system) == before
            else:
                assert after == before


@pytest.mark.parametrize("index", INDEXES)
def test_they_show_in_the_version(index):
    plain = metrics(truth)[index]
    versions = {plain.version}
    for name, text in plain.prompts.items():
        changed = dataclasses.replace(plain, instructions={name: f"{text} Be strict."})
        assert changed.version.startswith(f"{plain.version}+")
        assert changed.score(SAMPLE).version == changed.version
        versions.add(changed.version)
    assert len(versions) == 1 + len(plain.prompts)
    assert plain.version == type(plain).version, "the class and other objects are as they were"


@pytest.mark.parametrize("index", INDEXES)
def test_the_metric_s_own_put_in_again_change_nothing(index):
    plain = metrics(truth)[index]
    same = dataclasses.replace(plain, instructions=dict(plain.prompts))
    assert same.version == plain.version
    assert requests(same) == requests(plain)


def test_the_version_depends_on_the_texts_and_not_on_their_order():
    metric = metrics(truth)[0]
    one, two = ({"questions": "Q.", "answers": "A."}, {"answers": "A.", "questions": "Q."})
    versions = [dataclasses.replace(metric, instructions=given).version for given in (one, two, one)]
    assert len(set(versions)) == 1
    back = dataclasses.replace(dataclasses.replace(metric, instructions=one), instructions={})
    assert back.version == metric.version


def test_places_in_them_are_filled():
    metric = next(m for m in metrics(truth) if m.name == "alignment_coverage")
    (request,) = (
        r
        for r in requests(dataclasses.replace(metric, instructions={"questions": "Write {n} hard questions."}))
        if step(r) == "questions"
    )
    assert request.system.startswith("Write 5 hard questions.")


def test_what_the_user_handed_in_is_copied():
    given = {"questions": "Q."}
    metric = dataclasses.replace(metrics(truth)[0], instructions=given)
    given["questions"] = "Changed."
    assert metric.instructions == {"questions": "Q."}


def test_a_changed_metric_can_be_hashed_and_pickled():
    metric = dataclasses.replace(metrics(truth)[0], instructions={"questions": "Q."})
    assert hash(metric) == hash(metric)
    again = pickle.loads(pickle.dumps(dataclasses.replace(metric, llm=_Judge())))
    assert (again.version, again.instructions) == (metric.version, metric.instructions)


class _Judge:
    model = "j"
    asking = "together"

    def generate(self, request):
        raise NotImplementedError

    async def agenerate(self, request):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"verdicts": "V."}, ValueError, "instructions: 'verdicts' is no step; there are questions, answers"),
        ({"questions": " "}, ValueError, "instructions\\['questions'\\]: is blank"),
        ({"questions": None}, TypeError, "instructions\\['questions'\\]: is NoneType, not text"),
        ("Be strict.", TypeError, "instructions: is str; pass a mapping from step to text"),
    ],
)
def test_wrong_ones_are_refused_when_the_metric_is_made(given, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(metrics(truth)[0], instructions=given)


def test_a_metric_without_steps_has_none_to_replace():
    class Own(Metric):
        name, version, required_fields = "own", "1", ("response",)

        def _flow(self, sample):
            raise NotImplementedError

    with pytest.raises(ValueError, match="'a' is no step; there are none to replace"):
        Own(llm=_Judge(), instructions={"a": "b"})
