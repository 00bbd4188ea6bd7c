"""The page of labels: clicks and keys, locking, going on after a reload, the download, hostile texts."""

import json

import pytest

from ragstone import Evidence, Sample, Verdict
from ragstone.labels.drawing import draw_samples
from ragstone.labels.label_file import match_labels, read_labels
from ragstone.metrics.base import ItemKind
from ragstone.report import MetricInfo, Report
from ragstone.results.record import Record

from ..report.reports import scored  # noqa: TID252

pytestmark = pytest.mark.browser
ATTACK = '</script><img src=http://evil.example/a.png onerror=alert(1)>\u202e\x07\ud83d{"a":1}'
KINDS = (
    ItemKind("claim", "Is it supported?", ("supported", "contradicted", "not_in_source")),
    ItemKind("sentence", "Is it needed?", ("relevant", "irrelevant"), "text"),
)


def made(n=3, text="Emma came out in 1815.", kinds=KINDS):
    """Return a report of samples with two claims and a sentence each; the judge says that all is wrong."""
    place = Evidence(field="response", start=2, end=7, text="green")
    verdicts = [
        *(Verdict(id=str(i), kind="claim", text=f"{text} {i}", verdict="contradicted") for i in (1, 2)),
        Verdict(id="3", kind="sentence", text=text, verdict="irrelevant", evidence=(place,)),
    ]
    samples = [Sample(user_input=f"{text} Question {i}?", response="\U0001f600 green, and big.",
                      retrieved_contexts=[text] * 2) for i in range(n)]  # fmt: skip
    records = [Record(f"{text} q{i}", scored(0.125, "faithfulness", verdicts=verdicts), "judge", i) for i in range(n)]
    return Report.of(records, [MetricInfo("faithfulness", "1", "judge", items=kinds)], samples=samples)


def labels_of(page, report, tmp_path):
    """Return what was downloaded, which the reader has found to be labels of these results."""
    with page.expect_download() as download:
        page.get_by_role("button", name="download labels").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    match_labels(path, read_labels(path), [report])
    return [json.loads(line) for line in path.read_text().splitlines()]


def press(page, keys):
    for key in keys:
        page.keyboard.press({">": "ArrowRight", "^": "ArrowUp", "v": "ArrowDown"}.get(key, key))


def status(page):
    return page.get_by_role("status").inner_text()


def test_by_keys_to_a_file_of_labels(show, tmp_path):
    page = show(draw_samples(made()).page())
    assert page.get_by_role("button", name="lock").is_disabled()
    press(page, "12>")
    assert status(page) == "0 of 3 samples done."
    press(page, "2m>3^121>s")
    assert status(page) == "3 of 3 samples done, 1 skipped. All samples are done: download your labels."
    press(page, "1s")
    assert status(page).startswith("3 of 3")
    lines = labels_of(page, made(), tmp_path)
    assert [line["answer"] for line in lines] == [
        "supported", "contradicted", "irrelevant", "supported", "contradicted", "relevant", None,
    ]  # fmt: skip
    assert [line.get("missing") for line in lines] == [True] * 3 + [False] * 3 + [None]
    assert [line.get("skipped", False) for line in lines] == [False] * 6 + [True]


def test_by_clicks_and_on_after_a_reload(show, tmp_path):
    page = show(draw_samples(made()).page())
    claim = page.get_by_role("group", name="claim 2")
    claim.get_by_role("button", name="not in source").click()
    page.reload()
    assert claim.get_by_role("button", name="not in source").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="one score").click()
    page.get_by_label("or any number").fill("1.5")
    page.keyboard.press("Tab")
    assert page.get_by_role("button", name="lock").is_disabled()
    page.get_by_label("or any number").fill("0.3")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="lock").click()
    press(page, "4")
    page.reload()
    assert status(page) == "1 of 3 samples done."
    assert page.get_by_role("button", name="0.75").get_attribute("aria-pressed") == "true"
    press(page, ">")
    assert [line["answer"] for line in labels_of(page, made(), tmp_path)] == [0.3, 0.75]


def test_going_back_changes_an_answer_also_after_a_reload_and_at_the_end(show, tmp_path):
    page = show(draw_samples(made()).page())
    assert page.get_by_role("button", name="back").is_disabled()
    press(page, "111>s121>")
    assert status(page).startswith("3 of 3 samples done, 1 skipped.")
    page.reload()
    press(page, ["ArrowLeft"])
    assert status(page) == "2 of 3 samples done, 1 skipped."
    page.get_by_role("group", name="claim 1").get_by_role("button", name="not in source").click()
    press(page, ">")
    press(page, ["Backspace", "ArrowLeft"])  # to the one that was skipped
    press(page, "111>>")
    page.get_by_role("button", name="back").click()
    press(page, ["ArrowLeft", "ArrowLeft", "ArrowLeft"])  # not beyond the first
    page.get_by_role("group", name="claim 2").get_by_role("button", name="contradicted").click()
    press(page, ">>>")
    assert status(page).startswith("3 of 3 samples done. All")
    lines = labels_of(page, made(), tmp_path)
    assert [line["answer"] for line in lines] == [
        "supported", "contradicted", "relevant", "supported", "supported", "relevant",
        "not_in_source", "contradicted", "relevant",
    ]  # fmt: skip
    assert not any(line.get("skipped") for line in lines)


def test_the_place_of_a_passage_is_marked_and_only_lists_of_the_judge_lack_something(show):
    page = show(draw_samples(made()).page())
    assert page.locator("mark").count() == 0
    press(page, "vv")
    assert page.locator("mark").all_inner_texts() == ["green"]
    assert page.get_by_role("button", name="something is missing").is_visible()
    page = show(draw_samples(made(kinds=KINDS[1:])).page())
    assert page.get_by_role("button", name="something is missing").count() == 0
    page = show(draw_samples(made(kinds=())).page())
    assert page.get_by_role("button", name="each item").count() == 0
    assert page.get_by_label("or any number").is_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_texts_stay_texts_and_nothing_sticks_out(show, tmp_path, width):
    kinds = (ItemKind("claim", ATTACK, ("supported", "<img>")), KINDS[1])
    report = made(text=ATTACK, kinds=kinds)
    page = show(draw_samples(report).page(), width)
    assert page.locator("img, iframe, object, embed").count() == 0
    assert page.inner_text("body").count("<img src=http://evil.example/a.png") > 5
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    press(page, "121>")
    first, second, _ = labels_of(page, report, tmp_path)
    assert (first["answer"], "<img" in second["answer"]) == ("supported", True)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(show, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = show(draw_samples(made()).page(), width, color_scheme=scheme, bypass_csp=True)
    for keys in ("1vm", ""):
        press(page, keys)
        found = Axe().run(page).response["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious] == []
        page.get_by_role("button", name="one score").click()
