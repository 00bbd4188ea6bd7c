"""What the tests of live traffic share: a folder, a schema on the PostgreSQL server, and every kind of sink."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..support.postgres import PostgresServer  # noqa: TID252
from .cases import KINDS, Case, make_case

if TYPE_CHECKING:
    from ragstone.live import Sink


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """An empty schema of a database."""
    return postgres.new_schema()


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Case]]:
    """Makes a sink of a kind on an empty store, and closes it."""
    made: list[Sink] = []

    def make_one(kind: str) -> Case:
        url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
        case = make_case(kind, tmp_path, url)
        made.append(case.sink)
        return case

    yield make_one
    for sink in made:
        sink.close()


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, make: Callable[[str], Case]) -> Case:
    """Every sink."""
    return make(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, make: Callable[[str], Case]) -> Case:
    """Every sink with tables."""
    return make(request.param)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder, where `live_app` has its outbox and results, is the test's own."""
    monkeypatch.chdir(tmp_path)
