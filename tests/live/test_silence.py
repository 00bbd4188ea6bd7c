"""A connection to PostgreSQL that goes silent without an end, as after a failover or in a NAT that forgets it."""

from collections.abc import Iterator

import pytest

from ragstone.live import Alert, Budget, SQLSink
from ragstone.live.settings import Waits

from ..support.postgres import PostgresServer  # noqa: TID252
from ..support.proxy import Proxy  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, live, submit
from .test_fork import forks, in_child

ALERT = Alert("context_relevancy", below=0.5)


class Impatient(SQLSink):
    """One that soon cuts a connection on which nothing comes."""

    patience = 0.5


class Patient(SQLSink):
    """One that cuts it after a time in which a child is done."""

    patience = 15.0


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with Proxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
def url(proxy: Proxy, postgres: PostgresServer, postgres_url: str) -> str:
    return postgres_url.replace(f":{postgres.port}/", f":{proxy.port}/")


@pytest.mark.parametrize("outbox", [True, False], ids=["outbox", "memory"])
def test_it_is_cut_counted_and_logged_and_another_is_made(
    proxy: Proxy, url: str, tmp_path: object, outbox: bool, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Impatient(url)
    options = {"alerts": ALERT, "budget": Budget(calls_per_day=10**6)}
    with live(sinks=sink, outbox=f"{tmp_path}/o.db" if outbox else None, **options) as monitor:
        submit(monitor, range(5))
        assert monitor.flush(PATIENCE)
        before = proxy.connections
        proxy.go_silent()
        submit(monitor, range(5, 25))
        assert monitor.flush(PATIENCE)
        (stats,) = monitor.stats().sinks.values()
        assert (stats.written, stats.lost) == (25, 0)
        assert stats.failures or monitor.stats().errors
        soon(lambda: proxy.closed == before)
        assert proxy.connections == before + 1
    assert "no answer within 0.5 s; the connection was cut" in caplog.text
    assert sink.has("s24")


@forks
def test_a_fork_does_not_wait_for_it_and_the_child_makes_another(proxy: Proxy, url: str) -> None:
    """Were it waited for, it would have been cut meanwhile."""
    sink = Patient(url)
    monitor = live(sinks=sink, waits=Waits(sink=(10_000.0, 10_000.0)))
    submit(monitor, range(5))
    assert monitor.flush(PATIENCE)
    proxy.go_silent()
    submit(monitor, range(5, 10))
    soon(lambda: proxy.swallowed and monitor.stats().pending == 0)

    def work() -> None:
        submit(monitor, range(10, 15))
        assert monitor.flush(PATIENCE)

    in_child(work)
    (stats,) = monitor.stats().sinks.values()
    assert (stats.waiting, stats.failures) == (5, 0)
    read = SQLSink(url)
    assert [read.has(f"s{i}") for i in (4, 9, 14)] == [True, False, True]
    monitor.close(0.0)
