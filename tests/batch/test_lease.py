"""Who works on a row, and whether it still does."""

import os

import pytest

from ragstone.results.private_files import Lease

from ..support import programs  # noqa: TID252 - under importlib mode tests are no package

HOLD = "import sys; from pathlib import Path; from ragstone.results.private_files import Lease; lease = Lease(Path(sys.argv[1]))"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.db"


@pytest.fixture
def me(path):
    lease = Lease(path)
    yield lease
    lease.close()


def test_a_process_lives_until_it_is_killed(path, me, monkeypatch):
    def none_left(*args):
        raise OSError(24, "Too many open files")

    with programs.start(f"{HOLD}; print(lease.name, flush=True); sys.stdin.read()", str(path)) as other:
        name = other.stdout.readline().strip()
        assert me.lives(name)
        assert me.others() == {name}
        with monkeypatch.context() as context:
            context.setattr(os, "open", none_left)
            assert me.lives(name), "who cannot be asked is taken to live"
        other.kill()
    assert not me.lives(name)
    assert me.others() == set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_outlives_its_parent_holds_no_lease(path, me):
    forks = f"{HOLD}; import os; print(lease.name, flush=True); os.fork() or print(flush=True); sys.stdin.read()"
    with programs.start(forks, str(path)) as process:
        name = process.stdout.readline().strip()
        process.stdout.readline()
        process.kill()
        process.wait()
        assert not me.lives(name)


def test_a_name_that_is_no_name_touches_no_file(me, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in ("../precious", str(precious), "", ".", "1-00000000000", "x" * 5_000):
        assert not me.lives(name)
    assert precious.read_text() == "mine"
