"""The tables of what becomes of each name: all of them import, and those that are said to run are there."""

import re

import pytest

from .test_pages import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs the checkout: docs/")
MODULES = {
    "ragas": (
        "",
        "metrics",
        "metrics.base",
        "metrics.collections",
        "llms",
        "embeddings",
        "run_config",
        "dataset_schema",
    ),
    "deepeval": ("", "metrics", "test_case", "dataset", "models", "evaluate", "synthesizer", "prompt", "tracing"),
}


def rows(library):
    page = (ROOT / "docs" / f"coming-from-{library}.md").read_text(encoding="utf-8")
    table = page.partition("## What becomes of each name")[2].partition("\n## ")[0]
    for names, becomes in re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)[1:]:
        for name in re.findall(r"`([A-Za-z_]\w+)`", names):
            yield name, becomes


@pytest.mark.parametrize("library", MODULES)
def test_each_name_is_as_the_page_says(library):
    wrong = []
    for name, becomes in rows(library):
        found = [imported(library, module, name) for module in MODULES[library]]
        there = [each for each in found if each is not None and "Missing" not in type(each).__name__]
        if not any(each is not None for each in found) or bool(there) != becomes.startswith(("run", "`isinstance`")):
            wrong.append(name)
    assert wrong == []


def imported(library, module, name):
    namespace = {}
    where = f"ragstone_compat.{library}.{module}".rstrip(".")
    try:
        exec(f"from {where} import {name} as found", namespace)
    except ImportError:
        return None
    return namespace["found"]
