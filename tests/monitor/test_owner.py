"""Who works on a row, and whether it still lives."""

import os
import signal
import sys
from pathlib import Path

import pytest

from ragstone.monitor.owner import Owner

from .apps import app
from .live_app import soon

HOLD = "from pathlib import Path; from ragstone.monitor.owner import Owner; owner = Owner(Path('owners')); "
pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def me(tmp_path):
    owner = Owner(tmp_path / "owners")
    yield owner
    owner.close()


@pytest.fixture
def other():
    with app(HOLD + "say(owner.name); hear()") as process:
        process.name = process.hear()
        yield process


def test_a_process_lives_until_it_is_killed(me, other):
    assert me.lives(other.name)
    assert me.others() == {other.name}
    other.kill()
    other.wait()
    assert not me.lives(other.name)
    assert me.others() == set()


def test_two_owners_of_one_process_see_each_other(me, tmp_path):
    second = Owner(tmp_path / "owners")
    assert (me.lives(second.name), second.lives(me.name)) == (True, True)
    second.close()
    assert not me.lives(second.name)


def test_a_stopped_process_lives(me, other):
    other.send_signal(signal.SIGSTOP)
    assert me.lives(other.name)
    other.send_signal(signal.SIGCONT)


def test_a_name_that_is_no_name_touches_no_file(me, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in ("../precious", str(precious), "", ".", "precious", "1-00000000000", "x" * 5_000):
        assert not me.lives(name)
    assert precious.read_text() == "mine"


def test_who_cannot_be_asked_is_taken_to_live(me, other, monkeypatch):
    def none_left(*args):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", none_left)
    assert me.lives(other.name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # that it has threads
def test_a_forked_child_does_not_hold_its_parents_name(me):
    """The parent is killed, the child goes on: the parent is dead all the same."""
    code = """
import os
if os.fork():
    say(owner.name)
    os.kill(os.getpid(), 9)
say("child")
hear()
"""
    with app(HOLD + code) as process:
        said = {process.hear(), process.hear()}
        assert process.wait() == -signal.SIGKILL
        (name,) = said - {"child"}
        assert not me.lives(name)


def test_a_program_that_the_process_starts_does_not_hold_its_name(me):
    code = "import subprocess; subprocess.Popen([sys.executable, '-c', 'import os; os.read(0, 1)']); say(owner.name); hear()"
    with app(HOLD + code) as process:
        name = process.hear()
        process.kill()
        process.wait()
        soon(lambda: not me.lives(name))


def test_a_file_taken_away_while_it_was_made_is_made_again(tmp_path, monkeypatch):
    """Another process may find it before it is locked, and take it for a dead one's."""
    import ragstone.monitor.owner as module

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
    monkeypatch.setattr("ragstone.monitor.owner._lock", lambda file: False)
    before = len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0
    with pytest.raises(OSError, match="cannot be locked; put the outbox on a disk of this machine"):
        Owner(tmp_path / "owners")
    if before:
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_closing_twice(me):
    me.close()
    me.close()
    assert me.others() == set()
