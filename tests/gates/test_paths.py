"""What the pages for contributors name is there, and each room of the house is named."""

import pkgutil
import re
from pathlib import Path

import pytest

PAGES = ("AGENTS.md", "CONTRIBUTING.md")
MADE_LATER = (".venv/", ".nox/")


@pytest.mark.parametrize("page", PAGES)
def test_each_path_and_each_name_is_there(repository: Path, page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", (repository / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`([^`\n]+)`", text)
    paths = [
        each for each in named if re.fullmatch(r"[\w./*-]+(/|\.(py|md|toml))", each) and not each.startswith(MADE_LATER)
    ]
    bases = [repository / base for base in (".", "core/ragstone", "integrations")]
    assert len(paths) > 10
    assert [path for path in paths if not any(any(base.glob(path.rstrip("/"))) for base in bases)] == []
    for name in named:
        if re.fullmatch(r"ragstone(\.\w+)+", name):
            pkgutil.resolve_name(name)


@pytest.mark.parametrize("page", PAGES)
def test_each_folder_of_the_library_is_named(repository: Path, page: str) -> None:
    text = (repository / page).read_text(encoding="utf-8")
    rooms = [path.parent.name for path in (repository / "core" / "ragstone").glob("*/__init__.py")]
    assert [room for room in rooms if f"{room}/`" not in text] == []
