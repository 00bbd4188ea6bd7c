import time

import pytest

from ragstone.limits.budget import Entry

from .cases import Case
from .scripts import run_together

NOW = int(time.time()) // 60 * 60


def test_all_or_none(store: Case) -> None:
    ledger = store.sink.ledger()
    entries = [Entry("calls", NOW, 1, 5), Entry("money", NOW, 0.5, 0.4), Entry("tokens", NOW, 10, None)]
    assert ledger.spend(entries) == "money"
    assert ledger.spend([]) is None
    assert ledger.spend([Entry("calls", NOW, 3, 5), Entry("calls", NOW, 3, 5)]) == "calls"
    assert store.query("SELECT * FROM spending") == []
    assert ledger.spend([*entries[::2], Entry("money", NOW, 0.4, 0.4)]) is None
    assert ledger.spend([Entry("money", NOW, -0.3, 0.4)]) is None  # an estimate that was too high
    assert store.query("SELECT name, amount FROM spending ORDER BY name") == [
        ("calls", 1.0),
        ("money", pytest.approx(0.1)),
        ("tokens", 10.0),
    ]


def test_a_clock_that_is_behind_forgets_nothing_that_it_spends_in(store: Case) -> None:
    ledger = store.sink.ledger()
    assert ledger.spend([Entry("calls", 60, 1, 1)]) is None
    assert ledger.spend([Entry("calls", 60, 1, 1), Entry("tokens", 60, 1, None)]) == "calls"


SPENDER = """
import time
from ragstone.limits.budget import Entry

ledger = sink.ledger()
now = int(time.time())
ready()
granted = 0
for i in range(60):
    entries = [Entry("calls_per_day", 86_400, 1, 150), Entry("tokens_per_day", 86_400, 7, None)]
    entries += [Entry(name, 86_400 + i % 5, 1, None) for name in "abc"]
    if number % 2:
        entries.reverse()  # those that lock in the order given would wait for each other
    granted += ledger.spend(entries) is None
    if i % 10 == 0:
        sink.write([record(f"{number}-{i}"), record("shared"), record(f"shared-{i}")][:: 1 if number % 2 else -1])
print(granted)
"""


def test_four_processes_spend_exactly_the_limit(store: Case) -> None:
    granted = [int(out) for out in run_together(SPENDER, [store.sink] * 4)]
    assert sum(granted) == 150
    assert store.query("SELECT amount FROM spending WHERE name = 'calls_per_day'") == [(150.0,)]
    assert store.query("SELECT amount FROM spending WHERE name = 'tokens_per_day'") == [(1050.0,)]
    assert len(store.read()) == 4 * 6 + 1 + 6
