"""What labels make of a judge's scores: the arithmetic by hand, what it says, and what it refuses."""

from dataclasses import replace

import pytest
from sklearn import metrics

from ragstone import Verdict
from ragstone.labels import LabelError, corrected, corrected_difference, corrected_mean
from ragstone.labels.corrections import Correction, Corrections
from ragstone.labels.drawing import draw_samples
from ragstone.labels.estimates import CorrectedEstimate
from ragstone.labels.label_file import Draw
from ragstone.live import Feedback, SQLiteSink
from ragstone.report import Report

from ..report.reports import data_of, records  # noqa: TID252
from ..support.command import command  # noqa: TID252
from .population import label_of, labelled, made, write

SIXTY = [f"q{i}" for i in range(0, 300, 5)]


def numbers(report):
    return {record.sample_id: record.outcome.value for record in report}


def by_hand(report, truth, ids, **how):
    judge = numbers(report)
    others = [value for sample_id, value in judge.items() if sample_id not in ids]
    return corrected_mean([truth[i] for i in ids], [judge[i] for i in ids], others, **how)


def test_a_correction_is_that_of_the_arrays(tmp_path):
    report, truth = made()
    found = corrected(report, labelled(tmp_path / "l", report, truth, SIXTY))
    each = found["demo"]
    assert each.corrected == by_hand(report, truth, SIXTY)
    judge = numbers(report)
    off = corrected_difference([judge[i] - truth[i] for i in SIXTY], [0.0] * 60, [])
    mean = sum(judge[i] - truth[i] for i in SIXTY) / 60
    assert (each.off.mean, each.off.low, each.off.high) == pytest.approx((mean, off.low, off.high))
    alone = corrected_mean([truth[i] for i in SIXTY], [0.0] * 60, [])
    assert (each.people.n, each.people.mean, each.people.low) == (60, alone.mean, alone.low)
    assert each.summary.mean == pytest.approx(sum(judge.values()) / 300)
    assert (each.labels, each.skipped, each.by_items, each.why, list(found)) == (60, 0, False, "", ["demo"])
    text = str(found)
    assert "demo: 60 labels and this judge are worth" in text
    assert (
        f"60 labels and this judge are worth {each.corrected.labels_worth:.0f} labels; no number of labels would halve "
        f"the interval. Method: {each.corrected.method}." in text
    )
    assert f"demo: the judge gives {mean:.3f} more than people do (judge - people: +0." in text


def test_judge_and_people_agree_as_far_as_the_tables_of_both_say(tmp_path):
    report, truth = made()
    found = corrected(report, labelled(tmp_path / "l", report, truth, SIXTY))["demo"]
    judge, people = [numbers(report)[i] for i in SIXTY], [truth[i] for i in SIXTY]
    assert found.kappa.mean == pytest.approx(metrics.cohen_kappa_score(people, judge))
    assert found.sensitivity.mean == pytest.approx(metrics.recall_score(people, judge))
    assert found.specificity.mean == pytest.approx(metrics.recall_score(people, judge, pos_label=0.0))
    graded, truth = made(judged=lambda truth, i, draw: 0.5 * truth + 0.5 * draw.random())
    found = corrected(graded, labelled(tmp_path / "l", graded, truth, SIXTY))
    assert (found["demo"].sensitivity, found["demo"].kappa.n) == (None, 60)
    assert f"agreement of judge and people: Cohen's kappa {found['demo'].kappa.mean:.3f} (" in str(found)


def test_live_samples_of_several_rates_are_refused_with_the_way_out(tmp_path):
    report, truth = made(280, rate=lambda i: 1.0 if i % 3 else 0.25)
    with pytest.raises(LabelError, match=r"chosen at the rates 1, 0.25; .* \(--since\)"):
        corrected(report, labelled(tmp_path / "l", report, truth, SIXTY[:56], draw=Draw(chance=0.2)))
    report, truth = made(280, rate=lambda i: 0.25)
    found = corrected(report, labelled(tmp_path / "l", report, truth, SIXTY[:56], draw=Draw(chance=0.2)))["demo"]
    assert found.corrected == by_hand(report, truth, SIXTY[:56])


def test_fewer_than_20_labels_are_counted_and_correct_nothing(tmp_path):
    report, truth = made()
    found = corrected(report, labelled(tmp_path / "l", report, truth, SIXTY[:19]))
    each = found["demo"]
    assert (each.labels, each.people, each.corrected, each.off) == (19, None, None, None)
    assert "No corrected mean: 19 labels; fewer than 20 say too little of the judge's error." in str(found)
    assert corrected(report, labelled(tmp_path / "l", report, truth, SIXTY[:20]))["demo"].corrected is not None


@pytest.mark.parametrize(("skipped", "warned"), [(6, False), (7, True)])
def test_skipped_samples_are_counted_with_a_warning_above_a_tenth(tmp_path, skipped, warned):
    report, truth = made()
    labels = [label_of(report, i, truth[i]) for i in SIXTY[:54]]
    labels += [label_of(report, f"q{5 * i + 1}", None, skipped=True) for i in range(skipped)]
    found = corrected(report, write(tmp_path / "l", labels))
    assert (found["demo"].labels, found["demo"].skipped) == (54, skipped)
    assert f"{skipped} samples skipped." in str(found)
    assert ("Warning" in str(found)) == warned
    assert found["demo"].corrected == by_hand(report, truth, SIXTY[:54])  # the skipped are as all without a label


def test_a_constant_judge_adds_nothing(tmp_path):
    report, truth = made(judged=lambda *_: 1.0)
    found = corrected(report, labelled(tmp_path / "l", report, truth, SIXTY))
    each = found["demo"]
    assert (each.corrected, each.people.n) == (None, 60)
    assert each.people.low < each.people.mean < each.people.high
    assert "demo: no corrected mean: the judge says 1.000 of each, so that the labels alone count." in str(found)


ESTIMATE = CorrectedEstimate(0.631, 0.487, 0.756, "by hand", 46.0)


@pytest.mark.parametrize(
    ("by_metric", "said"),
    [
        ({"demo": {"corrected": ESTIMATE}}, "People would say 0.63 (0.49 to 0.76); the judge says 0.75."),
        ({"demo": {"corrected": ESTIMATE, "by_items": True}},
         "By people's labels of its items: 0.63 (0.49 to 0.76); the judge says 0.75."),
        ({"demo": {"why": "3 labels"}}, "No corrected mean: 3 labels."),
        ({"demo": {"corrected": ESTIMATE}, "other": {"why": "3 labels"}},
         "demo: people would say 0.63 (0.49 to 0.76); the judge says 0.75.\nother: no corrected mean: 3 labels."),
    ],
)  # fmt: skip
def test_what_people_would_say_stands_first_also_on_the_page(by_metric, said):
    report = Report.of([each for name in by_metric for each in records([0.5, 1.0], metric=name)])
    found = Corrections(
        report, {name: Correction(40, summary=report[name], **known) for name, known in by_metric.items()}
    )
    assert found.conclusion() == said
    shown = data_of(report.html(found))
    assert shown["conclusion"] == said
    assert [each.get("mean") for each in shown["also"][0]["corrected"]] == [
        0.631 if "corrected" in known else None for known in by_metric.values()
    ]


@pytest.mark.parametrize("judged", [lambda _, i, draw: draw.random(), lambda _, i, draw: float(draw.random() < 0.5)])
def test_a_judge_who_is_no_help_is_said_to_add_nothing(tmp_path, judged):
    report, truth = made(judged=judged)
    found = corrected(report, labelled(tmp_path / "l", report, truth, SIXTY))
    assert found["demo"].corrected.labels_worth == 60
    assert "The judge adds nothing to the 60 labels; " in str(found)
    assert "worth" not in str(found)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"draw": Draw(chance=0.4)}, "of 2 draws with other chances"),
        ({"draw": None}, r"1 of 60 labels are of samples that `ragstone label` did not draw.*--drawn-at-random"),
    ],
)
def test_labels_that_do_not_stand_for_all_are_refused(tmp_path, more, said):
    report, truth = made()
    labels = [label_of(report, i, truth[i], **(more if i == "q5" else {})) for i in SIXTY]
    with pytest.raises(LabelError, match=said):
        corrected(report, write(tmp_path / "l", labels))


def test_labels_of_samples_drawn_by_hand_are_taken_where_told_and_said_so(tmp_path):
    report, truth = made()
    file = labelled(tmp_path / "l", report, truth, SIXTY, draw=None)
    found = corrected(report, file, drawn_at_random=True)
    assert found["demo"].corrected == by_hand(report, truth, SIXTY)
    assert "demo: 60 labelled samples not drawn by `ragstone label`; taken to be random." in str(found)


@pytest.mark.parametrize(
    ("bounds", "higher", "said"),
    [((1.0, 5.0), True, "scores are from 1 to 5, and labels from 0 to 1"), ((0.0, 1.0), False, "lower scores are")],
)
def test_scores_on_another_scale_than_labels_are_neither_drawn_nor_corrected(tmp_path, bounds, higher, said):
    report, truth = made()
    records, samples = list(report), [report.sample(record) for record in report]
    info = replace(report.metrics[0], bounds=bounds, higher_is_better=higher)
    other = Report.of(records, [info], samples=samples)
    with pytest.raises(LabelError, match=f"demo: {said}"):
        corrected(other, labelled(tmp_path / "l", report, truth, SIXTY))
    with pytest.raises(LabelError, match=f"demo: {said}"):
        draw_samples(other)


def test_thumbs_stand_beside_the_scores_and_correct_nothing(tmp_path):
    report, truth = made()
    sink = SQLiteSink(tmp_path / "live.db")
    sink.write([replace(record, sample=report.sample(record)) for record in report])
    file = labelled(tmp_path / "l", report, truth, SIXTY)
    before = corrected(Report.load(tmp_path / "live.db"), file)
    sink.feedback([Feedback(sample_id=f"q{i}", value="thumbs_down", comment=None, at=1.0) for i in range(40)])
    sink.close()
    found = corrected(Report.load(tmp_path / "live.db"), file)
    assert before["demo"].corrected == found["demo"].corrected
    assert found["demo"].corrected.mean == pytest.approx(by_hand(report, truth, SIXTY).mean)
    assert "demo by feedback, by the judge alone: thumbs_down 0." in str(found)
    assert "(40)" in str(found)
    assert "feedback corrects nothing: people choose themselves what they give it on" in str(found)
    assert "feedback" not in str(before)


def claims(report, missing=()):
    """Return the report with two claims for each sample, and labels of both claims of 30: one right, one wrong."""
    verdicts = [Verdict(id=f"{k}", kind="claim", text=f"Claim {k}.", verdict="supported") for k in (1, 2)]
    records = [
        replace(each, outcome=each.outcome.model_copy(update={"metric": "faithfulness", "verdicts": tuple(verdicts)}))
        for each in report
    ]
    by_claims = Report.of(records, samples=[report.sample(each) for each in report])
    labels = [
        label_of(
            by_claims, f"q{i}", answer, kind="claim", item=k, text=f"Claim {k}.", missing=i in missing and k == "1"
        )
        for i in range(30)
        for k, answer in (("1", "supported"), ("2", "contradicted"))
    ]
    return by_claims, labels


def test_labels_of_the_judges_items_are_not_called_what_people_would_say(tmp_path):
    report, labels = claims(made(60)[0], missing=range(3))
    found = corrected(report, write(tmp_path / "l", labels))
    each = found["faithfulness"]
    judge = numbers(report)
    by_formula = corrected_mean(
        [0.5] * 30, [judge[f"q{i}"] for i in range(30)], [judge[f"q{i}"] for i in range(30, 60)]
    )
    assert each.corrected == by_formula
    assert (each.by_items, each.by_judges_items, each.missing) == (True, True, 0.1)
    text = str(found)
    assert "\nBy people's labels, on the items that the judge listed: 0." in text
    assert (
        "“something is missing” is marked on 10.0 % of the labelled samples. "
        "Only labels of whole samples (“one score” on the page) tell what people would say." in text
    )
    assert "people would say:" not in text
    assert not text.startswith("What people would say")


def test_a_sample_with_an_open_item_has_no_score(tmp_path):
    report, labels = claims(made(60)[0])
    found = corrected(report, write(tmp_path / "l", labels[:-1]))["faithfulness"]
    assert (found.labels, found.skipped) == (29, 0)
    assert found.notes == ("1 sample without a score by its labels (an item is open); left out.",)
    whole = [label_of(report, f"q{i}", 1.0) for i in range(30)]
    found = corrected(report, write(tmp_path / "l", [*labels, *whole]))["faithfulness"]
    assert (found.people.mean, found.by_items) == (1.0, False), "labels of whole samples go before those of items"


def test_what_depends_on_each_other_is_drawn_together(tmp_path):
    def of_doc(i):
        return {"metadata": {"doc": i // 10}}

    report, truth = made(sample=of_doc)
    path = labelled(tmp_path / "l", report, truth, SIXTY)
    found, alone = (corrected(report, path, group=group)["demo"] for group in ("metadata.doc", None))
    groups = [int(i[1:]) // 10 for i in (*SIXTY, *(i for i in truth if i not in SIXTY))]
    assert found.corrected == by_hand(report, truth, SIXTY, group=groups)
    assert (found.groups, found.corrected.labels_to_halve, alone.groups) == ("30 docs", None, "")
    for name in ("corrected", "people", "off", "kappa", "sensitivity", "specificity"):
        assert numbers_of(found, name) != numbers_of(alone, name)
    text = str(corrected(report, path, group="metadata.doc"))
    assert "60 labels of 30 docs and this judge are worth" in text
    assert "more groups, not more labels, would halve the interval" in text
    report.to_json(tmp_path / "r.jsonl")
    args = ["correct", str(tmp_path / "r.jsonl"), "--labels", str(path), "--group", "metadata.doc"]
    assert "60 labels of 30 docs and this judge are worth" in command(*args).output
    few, truth = made(sample=lambda i: {"metadata": {"doc": i % 4}})
    path = labelled(tmp_path / "l", few, truth, SIXTY)
    found = corrected(few, path, group="metadata.doc")["demo"]
    assert (found.corrected, found.why) == (None, "4 docs, and fewer than 5 say too little of others")


def numbers_of(found, name):
    return getattr(found, name).low, getattr(found, name).high
