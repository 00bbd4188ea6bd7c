"""What the pages for contributors name is there, and each room of the house is named."""

import pkgutil
import re
from pathlib import Path

import pytest

PAGES = ("AGENTS.md", "CONTRIBUTING.md")
PATH = re.compile(r"(?!\.venv|\.nox)[\w./*-]+(/|\.(py|md|toml))")


@pytest.mark.parametrize("page", PAGES)
def test_each_path_and_each_name_is_there(repository: Path, page: str) -> None:
    """A path stands below the root, the library, the integrations, or a folder that its line names too."""
    text = re.sub(r"^```.*?^```$", "", (repository / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    missing, found = [], 0
    for line in text.splitlines():
        bases = [repository, repository / "core" / "ragstone", repository / "integrations"]
        named = re.findall(r"`([^`]+)`", line)
        bases += [base / name for base in bases[:3] for name in named if PATH.fullmatch(name) and name.endswith("/")]
        for name in named:
            if re.fullmatch(r"ragstone(\.\w+)+", name):
                pkgutil.resolve_name(name)
            elif PATH.fullmatch(name):
                there = any(any(base.glob(name.rstrip("/"))) for base in bases)
                found += there
                missing += [] if there else [name]
    assert missing == []
    assert found > 10


@pytest.mark.parametrize("page", PAGES)
def test_each_folder_of_the_library_is_named(repository: Path, page: str) -> None:
    text = (repository / page).read_text(encoding="utf-8")
    rooms = [path.parent.name for path in (repository / "core" / "ragstone").glob("*/__init__.py")]
    assert [room for room in rooms if f"{room}/`" not in text] == []
