"""What is missing is named with what installs it."""

import sys

import pytest

from ragstone.sinks import SQLSink


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r'pip install "ragstone\[sql\]"'):
        SQLSink("postgresql://me@db.test/rag")
