"""What alerts have counted, in a database: with the outcomes or not at all, each once, and by many processes at once."""

import pickle
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from ragstone import Sample
from ragstone.live import Record, Sink
from ragstone.live.alarms import LowScore, Tallies, Tally, Window
from ragstone.live.sink import SinkError
from ragstone.results.read import open_results

from .cases import Case, score, unscored


def plus(tallies: Tallies, records: Sequence[Record], slices: Sequence[str] = ("",)) -> int:
    """Count records in slices of the alert "a", and return how many there were."""
    for name in slices:
        part, tally = tallies.load("a", name)
        tally.samples += len(records)
        tallies.save("a", part, tally)
    return len(records)


def kept(store: Case) -> dict[str, int]:
    return {part: tally.samples for _, part, tally in open_results(store.source).tallies()}


def test_a_score_counts_when_it_is_new(store: Case) -> None:
    sink = store.sink
    assert sink.watch([unscored("a"), score("b"), score("b")], plus) == 2
    assert sink.watch([score("a"), score("b")], plus) == 1, "a had no score; b is only replaced"
    assert sink.watch([], plus) == 0
    assert kept(store) == {"": 3}
    assert [each.sample_id for each in store.read()] == ["a", "b"]


def test_they_are_counted_in_the_order_in_which_they_came(store: Case) -> None:
    def names(_: object, records: Sequence[Record]) -> list[str]:
        return [record.sample_id for record in records]

    assert store.sink.watch([score("b"), score("a"), score("c")], names) == ["b", "a", "c"]


def test_both_or_neither(store: Case) -> None:
    def fails(tallies: Tallies, records: Sequence[Record]) -> None:
        plus(tallies, records)
        raise KeyError("no")

    store.sink.watch([score("a")], plus)
    with pytest.raises(KeyError):
        store.sink.watch([score("b")], fails)
    assert ([each.sample_id for each in store.read()], kept(store)) == (["a"], {"": 1})
    store.sink.write([score("c")])
    assert kept(store) == {"": 1}, "what is written otherwise is not counted"


def test_forgotten_samples_do_not_count(store: Case) -> None:
    store.sink.forget(ids=["a"])
    assert store.sink.watch([score("a"), score("b")], plus) == 1


def test_the_texts_of_a_sample(store: Case) -> None:
    def sample_of(tallies: Tallies, _: object) -> list[Sample | None]:
        return [tallies.sample(name, "demo") for name in ("a", "b", "c")]

    store.sink.write([score("a", sample=Sample(response="There.")), score("b")])
    assert store.sink.watch([], sample_of) == [Sample(response="There."), None, None]


def test_no_update_is_lost_and_no_place_is_twice(store: Case) -> None:
    store.sink.close()
    errors: list[BaseException] = []

    def work(number: int) -> None:
        sink: Sink = pickle.loads(pickle.dumps(store.sink))
        try:
            for i in range(15):
                ids = [f"{number} {i} {j}" for j in range(3)]
                while True:
                    try:
                        sink.watch([score(each) for each in ids], partial(plus, slices=["all", f"{number} {i}"]))
                        break
                    except SinkError as error:  # of two that make the table at once one fails, and tries again
                        errors.append(error)
                        assert len(errors) < 3, errors
        except BaseException as error:
            errors.extend([error] * 3)
        finally:
            sink.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) < 3, errors
    assert kept(store)["all"] == 3 * 15 * 3
    places = [tally.place for _, _, tally in open_results(store.source).tallies()]
    assert sorted(places) == list(range(1, 3 * 15 + 2))


def test_reset_and_forget(store: Case) -> None:
    lows = [LowScore(sample_id=name, value=0.1, submitted_at=at) for name, at in (("a", 5.0), ("b", 5.0), ("c", 1.0))]

    def save(tallies: Tallies, _: object) -> None:
        for place, raised in ((1, None), (2, 3.5)):
            window = Window(samples=3, total=1.0, lowest=lows)
            tallies.save("a", str(place), Tally(place=place, samples=3, windows=[window], raised_at=raised))

    def lowest() -> list[list[str]]:
        every = open_results(store.source).tallies()
        return [[low.sample_id for window in tally.windows for low in window.lowest] for _, _, tally in every]

    sink: Any = store.sink
    sink.watch([], save)
    sink.forget(before=2.0, ids=["a"])
    assert lowest() == [["b"], ["b"]]
    assert sink.watch([], lambda tallies, _: tallies.reset()) == 1
    assert [(tally.place, tally.samples, tally.raised_at) for _, _, tally in open_results(store.source).tallies()] == [
        (1, 3, None),
        (2, 0, None),
    ]


def test_a_database_older_than_alerts(store: Case) -> None:
    store.sink.write([score("a")])
    store.query("DROP TABLE tallies")
    assert open_results(store.source).tallies() == ()
    again: Sink = pickle.loads(pickle.dumps(store.sink))
    assert again.watch([score("b")], plus) == 1
    again.close()
    assert kept(store) == {"": 1}
