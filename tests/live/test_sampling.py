"""Which samples are scored, the same everywhere; their ids, and what outcomes say of the run."""

import itertools
from math import sqrt
from typing import Any

import pytest

from ragstone import Sample, trace_id
from ragstone.live.pending import Choice
from ragstone.live.sampling import Sampling

from .kit import Kept, Second, adds_up, live, metric, sample

FIRST, SECOND = metric(), Second(llm=metric().llm)
BOTH = [FIRST, SECOND]
IDS = [f"trace {i}" for i in range(10_000)]


def chosen(sampling: Sampling, name: str = "context_relevancy", ids: list[str] = IDS) -> set[str]:
    choices = sampling.choices(BOTH)
    return {i for i in ids if name in {choice.metric for choice in sampling.choose(choices, Sample(), i)}}


def choose(sampling: Sampling, given: Sample) -> list[Choice]:
    return sampling.choose(sampling.choices(BOTH), given, "1")


def near(count: int, share: float) -> bool:
    """Whether a count is within five standard deviations of what a share of the ids is on average."""
    return abs(count - share * len(IDS)) <= 5 * sqrt(len(IDS) * share * (1 - share))


def test_the_rate_is_kept_and_what_a_low_one_chooses_a_higher_one_chooses_too() -> None:
    rates = (0.0, 0.01, 0.1, 0.5, 0.99, 1.0)
    sets = [chosen(Sampling(rate=rate)) for rate in rates]
    assert all(near(len(found), rate) for found, rate in zip(sets, rates, strict=True))
    assert all(low < high for low, high in itertools.pairwise(sets))


def test_another_seed_chooses_others() -> None:
    one, other = chosen(Sampling(rate=0.5, seed="1")), chosen(Sampling(rate=0.5, seed="2"))
    assert near(len(one & other), 0.25)
    assert one == chosen(Sampling(rate=0.5, seed="1"))


def test_the_choice_is_that_of_other_processes_and_earlier_releases() -> None:
    assert chosen(Sampling(rate=0.002), ids=IDS[:2_000]) == {"trace 465", "trace 657"}


@pytest.mark.parametrize(
    ("rule", "given", "applies"),
    [
        ("error", {"metadata": {"error": "ValueError: no"}}, True),
        ("error", {"metadata": {"error": ""}}, False),
        ("thumbs_down", {"metadata": {"feedback": "thumbs_down"}}, True),
        ("thumbs_down", {"metadata": {"feedback": False}}, True),
        ("thumbs_down", {"metadata": {"feedback": -1}}, True),
        ("thumbs_down", {"metadata": {"feedback": 0}}, False),
        ("thumbs_down", {"metadata": {"feedback": ["down"]}}, False),
        ("empty_retrieval", {"retrieved_contexts": []}, True),
        ("empty_retrieval", {"retrieved_contexts": ["", " \n"]}, True),
        ("empty_retrieval", {"retrieved_contexts": ["", "text"]}, False),
    ],
)
def test_rules(rule: str, given: dict[str, Any], applies: bool) -> None:
    found = choose(Sampling(rate=0.0, always=rule), sample(1, **given))
    assert [(choice.metric, choice.rate, choice.by) for choice in found] == (
        [("context_relevancy", 1.0, rule), ("second", 1.0, rule)] if applies else []
    )


def test_a_rule_of_ones_own_and_its_name_in_the_record() -> None:
    def slow(given: Sample) -> bool:
        return bool(given.metadata["seconds"] > 5)

    with live(sinks=(sink := Kept()), sampling=Sampling(rate=0.0, always=["error", slow])) as monitor:
        monitor.submit(sample(1, metadata={"seconds": 3}))
        monitor.submit(sample(2, metadata={"seconds": 9}))
        monitor.submit(sample(3, metadata={}))  # the rule raises
    assert "1 of few evaluations were not chosen: Sampling(rate=1.0) chooses all" in str(monitor.stats())
    assert {(record.sample_id, record.chosen_by, record.rate) for record in sink.records.values()} == {
        ("s2", "slow", 1.0)
    }
    assert monitor.stats().reasons == {"dropped": {"where_failed": 1}, "not_sampled": {"not_chosen": 1}}


def test_where_stands_above_the_rules() -> None:
    sampling = Sampling(where=lambda given: "test" not in given.metadata, always=["error"])
    assert choose(sampling, sample(1, metadata={"error": "e"}))
    assert not choose(sampling, sample(1, metadata={"error": "e", "test": 1}))


def test_rates_are_written_down_with_the_outcomes_and_a_metric_without_one_scores_all() -> None:
    with live(BOTH, sinks=(sink := Kept()), sampling=Sampling(rate={"second": 0.5})) as monitor:
        for i in IDS[:200]:
            monitor.submit(sample(id=i))
    rates = {(record.outcome.metric, record.rate, record.chosen_by) for record in sink.records.values()}
    assert rates == {("context_relevancy", 1.0, "rate"), ("second", 0.5, "rate")}
    assert sum(key[1] == "context_relevancy" for key in sink.records) == 200
    stats = monitor.stats()
    assert stats.scored + stats.not_sampled == 400
    assert adds_up(stats)


def test_the_id_of_a_block_is_that_of_its_samples() -> None:
    with live(sinks=(sink := Kept())) as monitor:
        with trace_id("request 7"):
            monitor.submit(sample(None))
            monitor.submit(sample("own"))
            monitor.submit(sample(None))
        monitor.submit(sample(None, metadata={"ragstone_trace_id": "request 8"}))
        monitor.submit(sample(None))
    ids = [record.sample_id for record in sink.records.values()]
    assert sorted(ids)[-4:] == ["request 7", "request 7/2", "request 8", "sown"]
    assert len(set(ids)) == 5


def test_a_block_needs_an_id() -> None:
    for name, message in (("", "trace_id: '' is blank"), (7, "trace_id: 7 should be a valid string")):
        with pytest.raises(ValueError, match=message), trace_id(name):  # type: ignore[arg-type]
            pass


ABOUT = {"name": "rag", "tags": ["a", "b"], "user_id": "u", "session_id": 5, "run_id": "r", "secret": "s"}


@pytest.mark.parametrize("store_text", [True, False])
def test_outcomes_say_of_which_run_they_are(store_text: bool) -> None:
    with live(metric(), sinks=(sink := Kept()), store_text=store_text) as monitor:
        monitor.submit(sample(1, metadata=ABOUT))
    kept = sink.only()
    assert (kept.run_name, kept.tags, kept.user_id, kept.thread_id, kept.run_id) == ("rag", ("a", "b"), "u", "5", "r")


def test_what_is_not_to_be_kept_is_not() -> None:
    with live(metric(), sinks=(sink := Kept()), keep=["run_name"]) as monitor:
        monitor.submit(sample("ada", metadata=ABOUT))
        monitor.submit(sample("ada", metadata=ABOUT))
    kept = sink.only()
    assert (kept.run_name, kept.tags, kept.user_id, kept.thread_id, kept.run_id) == ("rag", (), None, None, None)
    assert len(kept.sample_id) == 32
    assert monitor.stats().duplicate == 1
