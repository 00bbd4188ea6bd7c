"""What the tests of an outbox share."""

import pytest


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The current folder, where `live_app` has its outbox and results, is the test's own."""
    monkeypatch.chdir(tmp_path)
