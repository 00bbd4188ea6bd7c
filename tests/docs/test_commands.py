"""Every `ragstone` command of README and docs/ has only options that the command line has."""

import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from ragstone import Criterion, Faithfulness
from ragstone.cli.main import cli

from .test_pages import PAGES, ROOT

BLOCK = re.compile(r"^ *```(?:bash|console)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs the checkout: docs/")


def commands(text):
    """The words after `ragstone` of each command."""
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.strip().removeprefix("$ "), comments=True)
            for start, word in enumerate(words):
                if Path(word).name == "ragstone" and (start == 0 or words[start - 1] in {"&&", "|"}):
                    rest = words[start + 1 :]
                    ends = (rest.index(end) for end in ("&&", "||", "|", ">", "<") if end in rest)
                    yield rest[: min(ends, default=None)]


def check(text):
    for words in commands(text):
        for word in words:  # the files of the example
            if re.fullmatch(r"[\w/-]+\.(jsonl|json|db|csv)", word):
                Path(word).parent.mkdir(exist_ok=True)
                Path(word).touch()
        name, command, arguments = cli.resolve_command(click.Context(cli), list(words))
        command.make_context(name, arguments).close()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_command_line_takes_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    modules = {"my_criteria": {"polite": Criterion("polite", "Is it?")}, "my_package": {"CitesSources": Faithfulness}}
    for name, contents in modules.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**contents))
    check(page.read_text(encoding="utf-8"))


def test_an_unknown_option_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(click.NoSuchOption):
        check("```bash\nragstone report a.db --sinc 1d\n```\n")
