"""Every file that the page shows is read, with the fields that it says."""

import re
from pathlib import Path

import pytest

from ragstone.sources import rows_of

from ..support.command import command  # noqa: TID252

PAGE = (Path(__file__).parents[2] / "docs" / "your-file.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r'^```\w+ title="(.+?)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL))
FIELDS = {
    "mine.jsonl": {"retrieved_contexts": "findings"},
    "phoenix.jsonl": "phoenix",
    "langsmith.jsonl": dict(
        pair.split("=")
        for pair in re.findall(r"--field (\w+=[\w.]+)", PAGE)
        if ".question" in pair or "outputs." in pair
    ),
}


def test_all_blocks_are_files():
    assert len(FILES) == PAGE.count("\n```json") + PAGE.count("\n```csv") > 0


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_page(name, tmp_path):
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    (row,) = rows_of(path, FIELDS.get(name), rows_by="query_id" if name == "passages.csv" else None)
    sample = row.sample
    assert sample.user_input == "Who wrote Emma?"
    if name == "rag_dataset.json":
        assert (sample.reference, sample.retrieved_contexts) == ("Jane Austen.", ())
        return
    assert sample.response == "Jane Austen."
    two = name in ("json.csv", "pandas.csv", "deepeval.csv", "numbered.csv", "passages.csv")
    assert list(sample.retrieved_contexts) == ["Jane Austen wrote Emma.", *(["It rains."] * two)]


def test_the_fields_are_shown_as_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").write_text(FILES["mine.jsonl"], encoding="utf-8")
    line = re.search(r"^ragstone (.+ --dry-run)$", PAGE, re.MULTILINE)[1]
    assert command(*line.split()).stderr.startswith(re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)[1])
