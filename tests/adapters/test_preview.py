"""What a preview shows of what handlers handed over, and how it runs an app."""

import asyncio

import pytest

from ragstone import Sample, Turn
from ragstone.adapters.collector import Collector, arun_once, run_once
from ragstone.adapters.preview import Wording
from ragstone.adapters.runs import Draft, Run
from ragstone.fields.read import PLAIN

Q, A = "Who wrote Emma?", "Jane Austen wrote it."
TONE = "friendly and short, if that is possible"
TEXTS = ["Emma is a novel by Jane Austen.", "It was published in 1815."]
WORDING = Wording("Handler(monitor, fields=FIELDS)", "Nothing ran.", "Each is a sample.", "Handler(tools=TOOLS)")
READ = {"user_input": "inputs.question", "response": "answer"}


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def collected(output, read_from=READ, skipped="", given=None, **fields):
    """A collector to which a handler has handed over one run."""
    collector = Collector(PLAIN, WORDING, given)
    collector.advise({"cancelled": "it was cancelled", "no_answer": "name it"})
    with collector.reading(Run(1, "chain", "app", {"question": Q, "tone": TONE}, output)):
        if skipped:
            collector.skip(skipped, names=("a",), likely="")
        else:
            collector.count_fields(read_from, names=("a",), likely={})
            collector.submit(Sample(**{"user_input": Q, "response": A, **fields}))
    return collector


def test_all_was_read():
    turns = [Turn(role="user", content="Hello"), Turn(role="assistant", content="Hi")]
    whole = {**READ, "retrieved_contexts": "docs"}
    preview = collected({"docs": TEXTS, "answer": A, "k": 3}, whole, retrieved_contexts=TEXTS, history=turns).preview()
    assert (preview.sample.response, preview.skipped, preview.missing, preview.fields) == (A, None, (), {})
    assert str(preview).splitlines() == [
        "app: a sample",
        "  user_input          <-  inputs.question  Who wrote Emma?",
        "  retrieved_contexts  <-  docs             2 texts: Emma is a novel by Jane Aus…",
        "  response            <-  answer           Jane Austen wrote it.",
        "  history             <-  earlier turns    2 turns: Hello",
        "  not read: k",
    ]


def test_what_is_missing_is_guessed_and_what_was_read_may_be_another():
    preview = collected(
        {"answer": A, "belege": TEXTS, "final reply": "Miss Austen."}, given={"response": "answer"}
    ).preview()
    assert preview.fields == {"response": "answer", "retrieved_contexts": "belege"}
    assert preview.missing == ("retrieved_contexts",)
    assert str(preview).splitlines() == [
        "app: a sample, without the contexts",
        "  user_input          <-  inputs.question  Who wrote Emma?",
        "  retrieved_contexts  ?   belege           2 texts: Emma is a novel by Jane Aus…",
        "  response            <-  answer           Jane Austen wrote it.",
        "                      or  final reply      Miss Austen.",
        "  not read: belege, final reply",
        "If what stands behind ? is right, paste:",
        '    Handler(monitor, fields={"response": "answer", "retrieved_contexts": "belege"})',
        "If another entry holds the answer:",
        '    Handler(monitor, fields={"response": "final reply"})',
    ]


def test_of_several_none_is_chosen_and_where_there_is_none_a_function_finds_it():
    preview = collected({"one": A, "two": "J. Austen wrote it.", "how": TONE}, skipped="no_answer").preview()
    assert (preview.sample, preview.skipped, preview.fields) == (None, "no_answer", {"user_input": "question"})
    assert str(preview).splitlines()[6:] == [
        "If what stands behind ? is right, paste:",
        '    Handler(monitor, fields={"user_input": "question"})',
        "Nothing in the dict that it returned looks like the contexts. Where the app finds them:",
        "    contexts(found)",
        "Which of these holds the answer?",
        '    Handler(monitor, fields={"response": "one"})',
        '    Handler(monitor, fields={"response": "two"})',
    ]
    wrong = str(collected({"answer": A}, given={"retrieved_contexts": "told"}).preview())
    assert "fields= says told, where no such field stands." in wrong.splitlines()
    assert str(collected({"k": 3}, skipped="no_answer").preview()).splitlines()[-2:] == [
        "Nothing in the dict that it returned looks like the answer. A function can give it:",
        '    Handler(monitor, fields=lambda inputs, output: {"response": ...})',
    ]


def test_what_was_read_of_no_sample_is_shown_and_tools_that_may_retrieve_are_named():
    run = Run(1, "chain", "app", {"question": Q}, {"one": A})
    run.inside += [Run(2, "tool", "search"), Run(3, "tool", "search"), Run(4, "model", "llm")]
    collector = Collector(PLAIN, WORDING)
    with collector.reading(run) as collected:
        collector.skip("no_answer")
        collected.read = Draft(Sample(user_input=Q), {"user_input": "inputs.question"})
    preview = collector.preview()
    assert (preview.sample, preview.read_from, preview.fields) == (
        None,
        {"user_input": "inputs.question"},
        {"response": "one"},
    )
    assert str(preview).splitlines()[1] == "  user_input          <-  inputs.question  Who wrote Emma?"
    assert str(preview).splitlines()[-1] == '    Handler(tools={"search"})'


def test_names_and_texts_of_the_app_obey_no_terminal():
    name = 'a"\x1b[31m\n' + 60 * "b"
    shown = str(collected({"answer": A, name: ["\x1b[2J" + 90 * "c", "d"]}).preview())
    assert "\x1b" not in shown
    assert repr(name) in shown
    table = shown.partition("If what")[0].splitlines()
    assert max(map(len, table[:4])) <= 110
    assert "…" in table[2]


def test_what_is_no_sample_says_why_and_what_was_taken_back_is_not_there():
    assert str(collected(None, skipped="cancelled").preview()) == "app: no sample (cancelled): it was cancelled"
    collector = collected(None, skipped="only_retrieval")
    collector.skip("only_retrieval", -1)
    assert (str(collector.preview()), collector.preview().skipped) == ("Nothing ran.", "no_run")


def test_several_runs_and_a_stream_that_ends_later():
    collector = Collector(PLAIN, WORDING)
    for number in (1, 2):
        with collector.reading(Run(number, "chain", f"app {number}", output={"k": number})):
            collector.count_fields({"user_input": "question"})
    collector.skip("excluded")
    for answer in ("one", "two"):
        collector.submit(Sample(user_input=Q, response=answer))
    preview = collector.preview()
    assert [(run.name, run.sample and run.sample.response) for run in preview.runs] == [
        ("app 1", "one"),
        ("app 2", "two"),
        ("a run", None),
    ]
    assert preview.sample.response == "two"
    assert str(preview).splitlines()[-1] == "Each is a sample."


def test_streams_are_read_to_their_end_and_an_app_that_raises_is_shown(capsys):
    read = []

    def stream():
        yield read.append(1)
        yield read.append(2)

    async def astream():
        yield read.append(3)

    async def app():
        return astream()

    for call in (stream, astream, app):
        run_once(Collector(PLAIN, WORDING), call)
    assert read == [1, 2, 3, 3]
    capsys.readouterr()

    def failing():
        yield 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_once(collected({"answer": A}), failing)
    assert capsys.readouterr().out.startswith("app: a sample, without the contexts\n")


def test_in_a_running_loop_an_async_app_is_awaited():
    async def app():
        return iter([await asyncio.sleep(0, 1)])

    async def main():
        with pytest.raises(RuntimeError, match=r"await apreview\(app, "):
            run_once(Collector(PLAIN, WORDING), app)
        return await arun_once(Collector(PLAIN, WORDING), app)

    assert asyncio.run(main()).runs == []
    # As a plain function that starts an agent says.
    with pytest.raises(RuntimeError, match=r"needs a running event loop: await apreview"):
        run_once(Collector(PLAIN, WORDING), asyncio.get_running_loop)
