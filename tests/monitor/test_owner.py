"""Who works on a row, and whether it still lives."""

import os

import pytest

from ragstone.store.owner import Owner

from .live_app import app

HOLD = "from pathlib import Path; from ragstone.store.owner import Owner; owner = Owner(Path('owners')); "
pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def me(tmp_path):
    owner = Owner(tmp_path / "owners")
    yield owner
    owner.close()


def test_a_process_lives_until_it_is_killed(me, monkeypatch):
    def none_left(*args):
        raise OSError(24, "Too many open files")

    with app(HOLD + "say(owner.name); hear()") as other:
        name = other.hear()
        assert me.lives(name)
        assert me.others() == {name}
        with monkeypatch.context() as context:
            context.setattr(os, "open", none_left)
            assert me.lives(name), "who cannot be asked is taken to live"
    assert not me.lives(name)
    assert me.others() == set()


def test_a_name_that_is_no_name_touches_no_file(me, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in ("../precious", str(precious), "", ".", "1-00000000000", "x" * 5_000):
        assert not me.lives(name)
    assert precious.read_text() == "mine"


def test_a_file_taken_away_while_it_was_made_is_made_again(tmp_path, monkeypatch):
    """Another process may find it before it is locked, and take it for a dead one's."""
    import ragstone.store.owner as module

    real, taken = module._lock, []

    def lock(file):
        if not taken:
            taken.extend((tmp_path / "owners").iterdir())
            taken[0].unlink()
        return real(file)

    monkeypatch.setattr(module, "_lock", lock)
    owner = Owner(tmp_path / "owners")
    other = Owner(tmp_path / "owners")
    assert taken
    assert other.lives(owner.name)
    owner.close()
    other.close()


def test_a_disk_that_cannot_lock_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("ragstone.store.owner._lock", lambda file: False)
    with pytest.raises(OSError, match="cannot be locked; put the outbox on a disk of this machine"):
        Owner(tmp_path / "owners")
