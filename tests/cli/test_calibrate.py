"""`ragstone calibrate`: what is paid for is told, and what cannot be is said before anything is paid for."""

from pathlib import Path

import pytest

from .conftest import row

FULL = Path("/dev/full")


@pytest.fixture
def calibrate(run, server, rows):
    pytest.importorskip("sklearn")
    labelled = rows(*(row(i, labels=[True, i % 2 == 0, False, False]) for i in range(8)))
    return lambda *args: run("calibrate", labelled, "--metric", "context_relevancy", "--llm", server.url, *args)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_loses_the_file_but_not_what_was_found(calibrate):
    done = calibrate("--out", FULL)
    assert done.exit_code == 2
    assert "labels: 32 (sentence) in 8 samples" in done.stdout
    assert "written" not in done.stdout
    assert done.stderr.endswith("Error: --out /dev/full: cannot write: No space left on device\n")


def test_a_file_that_is_no_journal(calibrate, server, tmp_path):
    other = tmp_path / "lab.jsonl"
    other.write_text("paid for\n" * 100)
    done = calibrate("--out", tmp_path / "c.json", "--journal", other)
    assert done.exit_code == 2
    assert f"Error: --journal {other}: is damaged, or not a ragstone journal" in done.stderr
    assert other.read_text() == "paid for\n" * 100
    assert "/v1/chat/completions" not in [seen.path for seen in server.seen]
