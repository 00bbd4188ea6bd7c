"""Before the first call `ragstone score` says where a file's fields stand, and how to name what it did not find."""

import json
from functools import partial

import pytest

from ..support.command import command  # noqa: TID252 - under importlib mode tests are no package
from .conftest import row

Q, A, C = "Who wrote Emma?", "Jane Austen wrote it.", "Emma is a novel by Jane Austen."
score = partial(command, "score", "--dry-run", "--llm", "openai:none")


@pytest.fixture
def written(tmp_path):
    """Writes a row as a file of JSON lines, or as CSV where a cell is to hold a list."""

    def write(row):
        path = tmp_path / "b.jsonl"
        path.write_text(json.dumps(row) + "\n", encoding="utf-8")
        return path

    return write


def table(done):
    """The lines of the table, each without its alignment."""
    title, *lines = done.stderr.splitlines()
    assert title == "b.jsonl: the fields by row 1"
    return [" ".join(line.split()) for line in lines]


# What is called otherwise, and the lines that say so.
FOUND = {
    "a list": ({"docs": [C]}, [f"retrieved_contexts <- docs 1 text: {C}"]),
    "a list in a cell": (
        {"contexts": json.dumps([C, C])},
        [f"retrieved_contexts <- contexts, a list in each cell 2 texts: {C}"],
    ),
    "one text": ({"source_documents": C}, [f"retrieved_contexts <- source_documents, one text in each cell 1 text: {C}"]),
    "several columns": (
        {"context_2": "It rains.", "context_1": C, "context_3": ""},
        [f"retrieved_contexts <- context_1, context_2 (2 columns) 2 texts: {C}"],
    ),
    "further fields": (
        {"docs": [C], "gt_answer": A, "chat_history": [{"role": "user", "content": "Hm?"}], "score": 0.5},
        [f"retrieved_contexts <- docs 1 text: {C}", f"reference <- gt_answer {A}",
         "history <- chat_history 1 turn: Hm?", "not read: score"],
    ),
}  # fmt: skip
MISSING = {
    "one": (
        {"kontext": [C], "k": 3},
        [f"retrieved_contexts ? kontext 1 text: {C}", "not read: k",
         "If what stands behind ? is right: --field retrieved_contexts=kontext"],
        "'kontext' may be it: --field retrieved_contexts=kontext",
    ),
    "one that a shell would split": (
        {"my docs": C},
        [f"retrieved_contexts ? my docs 1 text: {C}",
         "If what stands behind ? is right: --field retrieved_contexts='my docs'"],
        "'my docs' may be it: --field retrieved_contexts='my docs'",
    ),
    "several": (
        {"kontext_a": C, "kontext_b": "It rains."},
        [f"retrieved_contexts ? kontext_a 1 text: {C}", "? kontext_b 1 text: It rains.",
         "If one of them holds retrieved_contexts: --field retrieved_contexts=NAME"],
        "it also has 'kontext_a', 'kontext_b': name them with --field FIELD=KEY",
    ),
    "none": (
        {"gold": ["a.md"], "trace_id": "tr-1"},
        ["retrieved_contexts missing", "not read: gold, trace_id"],
        "it also has 'gold', 'trace_id': name them with --field FIELD=KEY",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND)
def test_where_the_fields_stand(written, case, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    more, lines = FOUND[case]
    done = score(written({"question": Q, "answer": A, **more}))
    ours = [f"user_input <- question {Q}", lines[0], f"response <- answer {A}", *lines[1:]]
    assert table(done)[: len(ours)] == ours
    assert done.stderr.splitlines()[-1].startswith("Metrics: rag")
    assert done.stdout.startswith("metric ")


@pytest.mark.parametrize("case", MISSING)
def test_what_is_not_found_has_its_line_to_paste(written, case):
    more, lines, said = MISSING[case]
    path = written({"question": Q, "answer": A, **more})
    done = score(path)
    missing = [line for line in table(done) if not line.startswith(("user_input", "response"))]
    assert missing[: len(lines)] == lines
    assert done.exit_code == 2
    assert done.stderr.rstrip().endswith(said)
    if "--field retrieved_contexts=" in said:
        again = score(path, "--field", f"retrieved_contexts={next(iter(more))}")
        assert f"retrieved_contexts <- {next(iter(more))}" in " ".join(again.stderr.split())
        assert again.exit_code == 0


def test_what_should_have_been_retrieved_is_not_offered(written):
    done = score(written({"input": Q, "expected_output": A, "context": [C]}))
    assert "retrieved_contexts missing" in table(done)
    assert "not read: context" in table(done)
    assert done.stderr.endswith("which is enough for no metric of ragstone\n")


def test_columns_of_another_language_are_named_by_their_words(tmp_path):
    path = tmp_path / "pt.csv"
    path.write_text("Perguntas,Respostas,Contexto_1,Contexto_2\nQ?,R.,C.,D.\n", encoding="utf-8")
    ways = [
        "--field",
        "user_input=Perguntas",
        "--field",
        "response=Respostas",
        "--field",
        "retrieved_contexts=Contexto_*",
    ]
    assert score(path).stderr.rstrip().replace("'", "").endswith(f"perhaps {' '.join(ways)}")
    again = " ".join(score(path, *ways).stderr.split())
    assert "retrieved_contexts <- Contexto_1, Contexto_2 (2 columns) 2 texts: C." in again


PASSAGES = "query_id,query,passage_id,passage,generated_answer\nq1,Q?,p1,C.,A.\nq1,Q?,p2,D.,\nq2,R?,p1,C.,B.\n"


def test_a_passage_a_row_is_refused_with_the_option_that_reads_it(tmp_path):
    path = tmp_path / "b.csv"
    path.write_text(PASSAGES, encoding="utf-8")
    done = score(path)
    assert done.exit_code == 2
    assert done.stderr.rstrip().endswith("to score the answer by all of them: --rows-by query_id")
    done = score(path, "--rows-by", "query_id")
    assert done.exit_code == 0
    said = [" ".join(line.split()) for line in done.stderr.splitlines()]
    assert "retrieved_contexts <- passage 2 texts: C." in said
    assert {"id <- query_id q1", "not read: passage_id"} <= {*said}


def test_names_from_a_file_do_not_command_the_terminal(written):
    done = score(written({"question": Q, "answer": A, "kon\x1b[31mtext": [C], "a\nb": 1}))
    assert "\x1b" not in done.output
    assert "not read: a b" in table(done)


def test_it_is_said_before_the_first_call_and_the_output_stays_what_scripts_read(run, server, rows):
    done = run("score", rows(b"[]", row(1)), "--metric", "context_relevancy", "--llm", server.url, "--json")
    assert done.stderr.startswith("rows.jsonl: the fields by row 2\n  user_input          <-  user_input ")
    assert json.loads(done.stdout)["metrics"]["context_relevancy"]["scored"] == 1
