"""Drawing samples to label: by chance, each with the same one, and nothing of the judge or the system goes with them."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from ragstone import Evidence, Sample, Verdict
from ragstone.labels import LabelError
from ragstone.labels.drawing import draw_samples
from ragstone.live import SQLiteSink
from ragstone.metrics.base import ItemKind
from ragstone.report import MetricInfo, Report
from ragstone.results.record import Record

from ..report.reports import records, report, scored, unscored  # noqa: TID252
from ..support.command import command  # noqa: TID252

KINDS = (ItemKind("claim", "Is it supported?", ("supported", "contradicted", "not_in_source")),)


def faithful(n, *, value=lambda i: i % 11 / 10, word="contradicted", answer="Answer", **changes):
    """Return scores of n samples by faithfulness, three conversations of a language each."""
    given = []
    for i in range(n):
        verdicts = [Verdict(id="1", kind="claim", text=f"Claim {i}.", verdict=word, probability=0.625, lowers_score=True,
                            evidence=(Evidence(field="retrieved_contexts", chunk=0, start=0, end=4, text="Text"),))]  # fmt: skip
        sample = Sample(user_input=f"Question {i}?", retrieved_contexts=["Text."], response=f"{answer} {i}.", id=f"q{i}",
                        metadata={"chat": f"c{i // 4}", "lang": "de" if i % 4 else "en", "thumb": 0.5})  # fmt: skip
        score = scored(value(i), "faithfulness", reason="BECAUSE", breakdown={"supported": 0.375}, verdicts=verdicts)
        given.append(Record(f"q{i}", score, "judge", i, sample=sample, **changes))
    return Report.of(given, [MetricInfo("faithfulness", "1", "judge", items=KINDS)])


def draws(chosen):
    return [entry["draw"] for entry in chosen.entries]


def ids(chosen):
    return [entry["of"]["id"] for entry in chosen.entries]


def test_nothing_of_the_judge_is_in_the_page_nor_the_metadata():
    one, other = (
        draw_samples(faithful(20, value=value, word=word), n=20)
        for value, word in ((lambda i: i / 32, "contradicted"), (lambda i: 1 - i / 64, "supported"))
    )
    assert one.entries == other.entries
    entries = json.dumps(one.entries)
    assert not any(word in entries for word in ("0.625", "0.375", "BECAUSE", "contradicted", "thumb", "lang"))
    assert "BECAUSE" not in one.page()


def test_each_sample_has_the_same_chance_and_the_order_says_nothing_of_the_score():
    given = faithful(8, value=lambda i: i / 8)
    drawn = [ids(draw_samples(given, n=3, seed=seed)) for seed in range(800)]
    assert all(len(set(each)) == 3 for each in drawn)
    hits = Counter(name for each in drawn for name in each)
    assert all(abs(hits[f"q{i}"] - 300) < 5 * (800 * 3 / 8 * 5 / 8) ** 0.5 for i in range(8))
    assert len({tuple(each) for each in drawn}) > 200
    assert {draw["chance"] for draw in draws(draw_samples(given, n=2))} == {0.25}
    all_ = draw_samples(given, n=60)
    assert (sorted(ids(all_)), {draw["chance"] for draw in draws(all_)}) == ([f"q{i}" for i in range(8)], {1.0})
    assert all_.notes[1:] == ("there are no more", "20 labels are the fewest that correct a mean")
    assert len(draw_samples(faithful(20), n=20).notes) == 1


def test_the_draw_is_the_same_again_whatever_the_order_of_the_results():
    results = list(faithful(30).results())
    back = Report.of([replace(each, row=29 - each.row) for each in reversed(results)], faithful(1).metrics)
    assert draw_samples(back, n=9) == draw_samples(faithful(30), n=9) != draw_samples(faithful(30), n=9, seed=1)


def test_what_is_left_out_is_counted():
    by_rule = next(iter(faithful(1, chosen_by="low").results()))
    other = Sample(user_input="Question 0?", response="Another answer.")
    given = [
        replace(by_rule, rate=1.0),
        replace(by_rule, row=1),
        Record("u", unscored(metric="faithfulness"), "judge", 3),
        Record("t", scored(0.5, "faithfulness"), "judge", 4),
        Record("q0", scored(0.5, "faithfulness"), "judge", 5, sample=other),
        Record("o", scored(0.5, "other"), "judge", 6),
    ]
    chosen = draw_samples(Report.of(given), metric="faithfulness")
    assert ids(chosen) == ["q0", "q0"]
    assert len({entry["of"]["sample_digest"] for entry in chosen.entries}) == 2
    assert sorted(chosen.notes[3:]) == [
        "left out: 1 the same once more",
        "left out: 1 unscored",
        "left out: 1 without texts",
    ]


def test_both_answers_stand_together_and_nothing_says_whose_they_are():
    same = {3, 7}
    a, b = faithful(20), faithful(24, answer="Reply", value=lambda i: i % 5 / 5)
    b = Report.of([next(x for x in a.results() if x.row == each.row) if each.row in same else each for each in b.results()], b.metrics)  # fmt: skip
    chosen = draw_samples(a, b, n=20)
    order, first = ids(chosen), Counter()
    assert [len(list(order)) for order in (order, set(order))] == [38, 20]
    for i, entry in enumerate(chosen.entries):
        name, answer = next((name, text) for field, _, name, text in entry["texts"] if field == "response")
        if int(entry["of"]["id"][1:]) in same:
            assert name == "answer"
        else:
            partner = i + 1 if name == "answer 1 of 2" else i - 1
            assert (order[partner], chosen.entries[partner]["draw"]) == (order[i], entry["draw"])
            first[name, answer.split()[0]] += 1
    assert len(first) == 4
    swapped = draw_samples(b, a, n=20)
    assert {json.dumps(entry["of"], sort_keys=True) for entry in swapped.entries} == {
        json.dumps(entry["of"], sort_keys=True) for entry in chosen.entries
    }
    assert "the page has 38 samples: both answers of a pair, or one where they are equal" in chosen.notes
    assert "left out: 4 ids that do not have one score with texts in each file" in chosen.notes


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"metric": "other"}, "--metric other: the results hold no score of it; they hold faithfulness"),
        ({"report": Report.of([*faithful(2).results(), *records([0.5], metric="other")])},
         "hold faithfulness, other; name the one to label"),
        ({"report": report([0.5])}, "no texts to label: score again without --no-texts"),
        ({"report": report([None])}, "hold no score of it; they hold no scores at all"),
        ({"other": faithful(3, answer="B").__class__.of([replace(x, sample_id="z") for x in faithful(1).results()])},
         "faithfulness: no id has a score and texts in both"),
        ({"other": Report.of([replace(x, judge="j2") for x in faithful(1).results()])},
         "faithfulness: there are scores of version 1, judge j2 and of version 1, judge judge; score all by one"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(more, message):
    with pytest.raises(LabelError, match=message):
        draw_samples(**{"report": faithful(3)} | more)


def test_a_metric_whose_items_give_no_score_is_labelled_by_one_score():
    verdict = Verdict(id="1", kind="claim", text="Yes.", verdict="supported")
    own = report([0.5], samples=[Sample(response="Yes.")], verdicts=[verdict],
                 metrics=[MetricInfo("demo", "1", "judge", items=KINDS)])  # fmt: skip
    assert [entry["items"] for entry in draw_samples(own).entries] == [[]]


def test_bad_input_writes_nothing(tmp_path):
    faithful(3).to_json(results := tmp_path / "r.jsonl")
    texts = tmp_path / "t.jsonl"
    texts.write_text('{"a": 1}\n')
    sink = SQLiteSink(tmp_path / "live.db")
    sink.write([replace(each, sample=None) for each in faithful(3).results()])
    sink.close()
    out = tmp_path / "out.html"
    for args, message in (
        ((results, "-n", 0), "0 is not in the range x>=1"),
        ((tmp_path / "none.jsonl",), "no such file"),
        ((results, texts), "t.jsonl"),
        ((tmp_path / "live.db",), "have Monitor(store_text=True)"),
    ):
        done = command("label", *args, "--out", out)
        assert (done.exit_code, out.exists()) == (2, False), args
        assert message in done.stderr, done.stderr
    done = command("label", results, "--out", results)
    assert (done.exit_code, "is RESULTS itself" in done.stderr) == (2, True)
    done = command("label", results, "--out", tmp_path / "no" / "x.html")
    assert (done.exit_code, "cannot write" in done.stderr) == (2, True)
