"""docs/fields.md has the vocabulary as it is."""

import importlib.util

import pytest

from .test_pages import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs the checkout: docs/")


def test_the_tables_are_those_of_the_code():
    script = importlib.util.spec_from_file_location("vocabulary", ROOT / "docs" / "vocabulary.py")
    vocabulary = importlib.util.module_from_spec(script)
    script.loader.exec_module(vocabulary)
    page = vocabulary.PAGE.read_text(encoding="utf-8")
    assert page == vocabulary.with_tables(page), "run: python docs/vocabulary.py"
