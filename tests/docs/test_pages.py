"""Every link of every page leads somewhere, and the metrics' pages match the code."""

import dataclasses
import importlib
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

import ragstone

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(p for name in ("benchmarks", "docs", "examples") for p in (ROOT / name).rglob("*.md"))]
METRICS = ("SummarizationScore", "AlignmentCoverage", "ResponseRelevancy", "ResponseCompleteness", "ContextRelevancy")

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs the checkout: docs/")


def prose(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """The anchors that GitHub makes of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    missing = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("name", METRICS)
def test_a_metrics_page_names_every_option_and_no_other(name):
    metric = getattr(ragstone, name)
    page = ROOT / "docs" / "metrics" / f"{metric.name}.md"
    shared = {each.name for each in dataclasses.fields(ragstone.Metric)}
    own = {each.name for each in dataclasses.fields(metric)} - shared
    table = re.search(r"^## Options\n(.*?)^## ", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
    rows = re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE)
    assert {option for row in rows for option in re.findall(r"`(\w+)`", row)} == own
    index = (ROOT / "docs" / "metrics" / "README.md").read_text(encoding="utf-8")
    assert [option for option in sorted(shared) if f"| `{option}` |" not in index] == []


def test_the_tokens_on_the_pages_are_those_that_are_counted():
    from ..core.test_costs import CASES  # noqa: TID252

    for case, (metric, _, _, (calls, rounds, size)) in CASES.items():
        text = (ROOT / "docs" / "metrics" / f"{metric.name}.md").read_text(encoding="utf-8")
        assert re.search(rf"\| {calls}\b[^|]*\| {rounds} \| {size:,} \|", text) or f"| {size:,} |" in text, case


def test_the_reference_has_every_public_name():
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    listed = dict(re.findall(r"^::: ([\w.]+)\n    options:\n      members: \[(.*)\]$", pages, re.MULTILINE))
    there = {name for names in listed.values() for name in names.split(", ")}
    for module in listed:
        assert set(importlib.import_module(module).__all__) - there - {"__version__"} == set(), module
