"""The repository, for tests that look at its files."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def repository() -> Path:
    """The checkout's root; skips where only the tests are, as in the wheel's own run."""
    if not (ROOT / "noxfile.py").is_file():
        pytest.skip("needs the checkout: noxfile.py, README.md, .ci/run")
    return ROOT
