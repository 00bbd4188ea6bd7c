"""The repository, for tests that look at its files."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def repository() -> Path:
    """The checkout's root; skips where only the tests or the source distribution are."""
    if not (ROOT / ".github").is_dir():
        pytest.skip("needs the checkout: .ci/, .github/")
    return ROOT
