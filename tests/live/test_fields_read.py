"""Where the fields of live samples came from and which were missing: counted, logged once, and said with a way out."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragstone import ContextRecall, Monitor, Sample
from ragstone.testing import FakeLLM

from .kit import Kept, metric, sample

ADVICE = {
    "no_answer": 'name it: fields={"response": "NAME"}',
    "no_contexts": 'Name them: contexts(docs), or fields={"retrieved_contexts": "NAME"}',
}
READ = {"user_input": "inputs.question", "response": "answer"}


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with Monitor(metric(), sinks=Kept()) as monitor:
        monitor.advise(ADVICE)
        yield monitor


LINES = {
    "one entry can be meant": ("told", '"told"}'),
    "none, or several": ("", "...} (for ... write the entry's name)"),
    "one that no line can quote": ('the "answer"', "...} (for ... write the entry's name)"),
    "one that would be cut": ("x" * 101, "...} (for ... write the entry's name)"),
}


@pytest.mark.parametrize("case", LINES)
def test_a_run_without_an_answer_has_a_line_to_paste_only_where_one_entry_can_be_meant(monitor, caplog, case):
    likely, pasted = LINES[case]
    for _ in range(11):
        monitor.skip("no_answer", names=["question", "told"], likely=likely)
    monitor.skip("no_answer", names=["question"])
    way_out = f'had no answer under a usual name (there were: question, told). Name it: fields={{"response": {pasted}'
    stats = monitor.stats()
    assert f"\n12 runs {way_out}" in str(stats)
    assert stats.names == {"response": {("question", "told"): 11, ("question",): 1}}
    assert (caplog.messages[0], len(caplog.messages)) == (f"1 run {way_out}", 2)


def test_missing_contexts_are_as_loud_as_a_missing_answer(monitor, caplog):
    for _ in range(12):
        monitor.count_fields(READ, ["citations", "question"], {"retrieved_contexts": "citations"})
        monitor.submit(sample(retrieved_contexts=()))
    stats = monitor.stats()
    way_out = 'Name them: contexts(docs), or fields={"retrieved_contexts": "citations"}'
    assert caplog.messages == [f"1 sample had no contexts (there were: citations, question). {way_out}"]
    assert f"\n12 samples had no contexts (there were: citations, question). {way_out}\n" in str(stats)
    assert (stats.missing, stats.names) == (
        {"retrieved_contexts": 12},
        {"retrieved_contexts": {("citations", "question"): 12}},
    )


def test_it_says_where_each_field_came_from_and_how_often(monitor, caplog):
    for number in range(30):
        monitor.count_fields({**READ, "retrieved_contexts": f"searches ({number})"})
    monitor.count_fields({**READ, "retrieved_contexts": "searches (3)"})
    read_from = monitor.stats().read_from
    assert (read_from["response"], read_from["user_input"]) == ({"answer": 31}, {"inputs.question": 31})
    contexts = read_from["retrieved_contexts"]
    assert (len(contexts), contexts["searches (3)"], contexts["others"], sum(contexts.values())) == (21, 2, 10, 31)
    assert "response <- answer (31); retrieved_contexts <- others (10), searches (3) (2)" in str(monitor.stats())
    assert caplog.messages == []


def test_of_names_that_are_never_the_same_twenty_are_kept_and_logged(monitor, caplog):
    for number in range(30):
        monitor.count_fields(READ, [f"name {number}", *map(str, range(1_000))])
    monitor.skip("no_answer", -1, names=["taken back"])
    names = monitor.stats().names["retrieved_contexts"]
    assert (len(names), {len(each) for each in names}, monitor.stats().missing) == (
        20,
        {20},
        {"retrieved_contexts": 30},
    )
    assert len(caplog.messages) == 20


OWN = {
    "lacks contexts": ({"user_input": "q", "response": "a"}, {"retrieved_contexts": 1, "reference": 1}),
    "has a field of None": ({"retrieved_contexts": ["c"], "reference": None}, {"reference": 1}),
    "found nothing": ({"retrieved_contexts": [], "reference": "r"}, {}),
}


@pytest.mark.parametrize("case", OWN)
def test_a_sample_that_the_app_submits_itself_is_looked_into(caplog, case):
    given, missing = OWN[case]
    with Monitor(ContextRecall(llm=FakeLLM(lambda _: "yes")), sinks=Kept()) as monitor:
        monitor.submit(Sample(**given))
        stats = monitor.stats()
    assert stats.missing == missing
    assert len([line for line in caplog.messages if "had no" in line]) == len(missing)
    if len(missing) == 2:
        line = "1 sample had no contexts (there were: response, user_input). Pass it: Sample(retrieved_contexts=...)"
        assert line in caplog.messages
        assert line in str(stats)


def test_threads_that_count_at_once_lose_nothing(monitor):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: monitor.count_fields(READ, ["docs"]), range(2_000)))
    stats = monitor.stats()
    assert stats.read_from == {"user_input": {"inputs.question": 2_000}, "response": {"answer": 2_000}}
    assert (stats.missing, stats.names) == (
        {"retrieved_contexts": 2_000},
        {"retrieved_contexts": {("docs",): 2_000}},
    )
