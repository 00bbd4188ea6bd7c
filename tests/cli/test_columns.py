"""Columns with other names end in a sentence that has them, and what to type."""


def test_columns_that_hold_no_field_are_named(score, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,context,text\nWho?,Ann.,Ann.\n")
    done = score(path, "--metric", "faithfulness")
    assert done.exit_code == 1
    assert "row 1 also has 'context', 'text': --field retrieved_contexts=context" in " ".join(done.output.split())
    assert "doctor" not in done.output
    done = score(path, "--metric", "faithfulness", "--field", "retrieved_contexts=context", "--field", "response=text")
    assert "also has" not in done.output


def test_a_preset_by_name(score, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"input": "Who?", "reference": "Ann.", "output": "Ann."}\n')
    assert "1/1" in score(path, "--metric", "faithfulness", "--field", "phoenix").stdout
