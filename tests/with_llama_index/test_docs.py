"""docs/llama_index.md: its first snippets run as they stand, and its tables name what there is."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ragstone.live.counters import SKIP_REASONS
from ragstone_llama_index import instrument
from ragstone_llama_index.responses import _ANSWERS
from ragstone_llama_index.spans import _QUESTIONS

PAGE = Path(__file__).parents[2] / "docs" / "llama_index.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs the checkout: docs/")


def snippets():
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_first_snippet_and_the_live_one_run_after_the_install_line(tmp_path):
    first = snippets()[0]
    live = next(each for each in snippets() if "print(monitor.stats())" in each)
    imported = set(re.findall(r"^from (\w+)", first + live, re.MULTILINE))
    assert imported == {"llama_index", "ragstone", "ragstone_llama_index"}
    assert "llama_index.llms." not in first + live, "the install line brings llama-index-core alone"
    for text in (first, first + live):
        command = [sys.executable, "-c", text]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0] == re.search(r"^# (.*)$", first, re.MULTILINE)[1]
    assert "1 samples, 1 evaluations" in done.stdout


def test_the_page_names_every_reason_option_and_field():
    text = PAGE.read_text(encoding="utf-8")
    only_elsewhere = {"interrupted", "nothing_found", "only_step"}  # reasons of the LangChain handlers
    assert (
        set(re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE)) >= set(SKIP_REASONS) - only_elsewhere
    )
    options = set(inspect.signature(instrument).parameters) - {"monitor"}
    assert set(re.findall(r"^\| `(\w+)=` \|", text, re.MULTILINE)) == options
    assert [name for name in (*_QUESTIONS, *_ANSWERS) if f"`{name}`" not in text] == []
