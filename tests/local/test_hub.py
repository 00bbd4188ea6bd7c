"""Models of the Hugging Face hub: the real client against a stand-in for the hub."""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ragstone.judge_names import make_llm
from ragstone.local import LocalLLM, PullError, pull

from ..support.command import command  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252 - under importlib mode tests are no package
from .conftest import Hub

CORE = Path(__file__).parents[2] / "core"
CONTENT = b"GGUF" + bytes(range(256)) * 40
NAME = "hf:Some/Model-GGUF/q4/some-model.Q4_K_M.gguf"
FILE = NAME.removeprefix("hf:")


@pytest.fixture(autouse=True)
def _file(hub: Hub) -> None:
    hub.files[FILE] = CONTENT


def test_pulled_pinned_and_named(hub: Hub, home: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"{NAME} is not in .*`ragstone pull {NAME}`"):
        LocalLLM(NAME).load()
    done = command("pull", NAME)
    path = home / "hf" / FILE
    assert (done.exit_code, done.stdout) == (0, f"{path}\n")
    assert "some-model.Q4_K_M.gguf: 0.0 MB from the Hugging Face hub" in done.stderr
    assert path.read_bytes() == CONTENT
    pin = json.loads(path.with_name(f"{path.name}.lock.json").read_text())
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    assert pin == {"commit": "1" * 40, "sha256": sha256, "size": len(CONTENT)}
    assert sorted(left.name for left in home.rglob("*?.*") if left.is_file()) == [path.name, f"{path.name}.lock.json"]
    llm = make_llm(f"local:{NAME}")
    assert llm.model == "local:some-model.Q4_K_M"
    with pytest.raises(RuntimeError, match="llama.cpp cannot load .*some-model"):  # so it was found
        llm.load()  # type: ignore[attr-defined]


def test_the_commit_of_the_first_pull_stays_until_updated(hub: Hub, home: Path) -> None:
    (path,) = pull(NAME)
    hub.past[f"{hub.commit}/{FILE}"] = CONTENT
    hub.commit, hub.files[FILE] = "2" * 40, CONTENT[::-1]
    path.unlink()
    assert command("pull", NAME).exit_code == 0
    assert path.read_bytes() == CONTENT
    assert command("pull", "--update", NAME).exit_code == 0
    assert path.read_bytes() == CONTENT[::-1]
    path.unlink()
    assert pull(NAME)[0].read_bytes() == CONTENT[::-1]


def test_an_interrupted_pull_goes_on(hub: Hub, home: Path) -> None:
    big = hub.files[FILE] = bytes(24 << 20)  # the client writes pieces of some MiB
    hub.stall = threading.Event()
    environment = {**os.environ, "PYTHONPATH": str(CORE)}
    process = subprocess.Popen(
        [sys.executable, "-m", "ragstone", "pull", NAME], env=environment, stderr=subprocess.PIPE
    )
    try:
        soon(lambda: any(path.stat().st_size for path in home.rglob("hub")) or process.poll() is not None)
        assert process.poll() is None, process.stderr and process.stderr.read()
    finally:
        process.kill()
        process.communicate()
        hub.stall.set()
    assert not (home / "hf" / FILE).exists()
    hub.stall = None
    assert pull(NAME)[0].read_bytes() == big
    assert re.fullmatch(rf"GET /stored/{FILE} bytes=[1-9]\d+-", hub.asked[-1])


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        ((404, "EntryNotFound"), "Entry Not Found"),
        ((401, "RepoNotFound"), "private or gated"),
        ((403, "GatedRepo"), "gated repo"),
        ((500, ""), "500"),
    ],
)
def test_what_the_hub_refuses(hub: Hub, home: Path, refusal: tuple[int, str], message: str) -> None:
    hub.refusal = refusal
    with pytest.raises(PullError, match=message) as caught:
        pull(NAME)
    assert "\n" not in str(caught.value)
    assert not home.exists()


def test_no_network(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pull(NAME)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert pull(NAME) == path  # what is whole needs no network
    path[0].write_bytes(b"damaged")
    with pytest.raises(PullError, match="not from the Hugging Face hub: .*refused"):
        pull(NAME)
    with pytest.raises(PullError, match="not from the Hugging Face hub: .*refused"):
        pull(NAME, update=True)


def test_content_that_is_not_what_the_hub_says(hub: Hub, home: Path) -> None:
    hub.claimed = {"X-Linked-Etag": f'"{"0" * 64}"'}
    with pytest.raises(PullError, match="wrong content: expected sha256 0000"):
        pull(NAME)
    hub.claimed = {"X-Linked-Etag": '"abc"'}
    with pytest.raises(PullError, match="gives no sha256"):
        pull(NAME)
    hub.claimed = {"X-Linked-Size": str(10**18)}
    with pytest.raises(PullError, match="not from the Hugging Face hub: "):
        pull(NAME)
    hub.claimed = {}
    assert pull(NAME)[0].read_bytes() == CONTENT
    assert not (home / "parts").exists() or not any((home / "parts").iterdir())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hf:some/model/model.bin", "not one whole GGUF file on"),
        ("hf:some/model", "write hf:OWNER/REPO/FILE.gguf"),
        ("some/model/x.gguf", "write hf:OWNER/REPO/FILE.gguf"),
        ("hf:some/model/../../../x.gguf", "write hf:OWNER/REPO/FILE.gguf"),
        ("hf:/etc/model/x.gguf", "write hf:OWNER/REPO/FILE.gguf"),
        ("hf:some/model/C:\\x.gguf", "write hf:OWNER/REPO/FILE.gguf"),
        ("hf:some/model/big-00001-of-00003.gguf", "not one whole GGUF file on"),
    ],
)
def test_names_that_are_refused_before_anything_is_asked(hub: Hub, home: Path, name: str, message: str) -> None:
    done = command("pull", name)
    assert (done.exit_code, message in done.stderr, hub.asked, home.exists()) == (2, True, [], False)
    with pytest.raises(ValueError, match="hf:|some/model/x.gguf"):
        LocalLLM(name if name.startswith("hf:") else f"hf:{name[:5]}")


def test_a_damaged_lock_file(hub: Hub) -> None:
    (path,) = pull(NAME)
    path.with_name(f"{path.name}.lock.json").write_text("{}")
    done = command("pull", NAME)
    assert (done.exit_code, "lock.json is damaged" in done.stderr) == (2, True)
