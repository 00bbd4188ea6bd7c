"""The command as a function and as a process, a judge on loopback that fills in any schema, and rows."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ..support.command import command  # noqa: TID252
from ..support.judges import served  # noqa: TID252 - under importlib mode tests are no package
from ..support.openai_server import OpenAIServer, error  # noqa: TID252

MODEL = "test-model"


def answer(body: dict[str, Any]) -> Any:
    """Answer for one model, and no other."""
    return served(body) if body["model"] == MODEL else error(404, f"The model `{body['model']}` does not exist")


def row(i: int, **more: Any) -> dict[str, Any]:
    contexts = [f"Book {i} is a novel. Ann {i} wrote it.", "It rains. It snows."]
    return {"user_input": f"Who wrote book {i}?", "retrieved_contexts": contexts, "response": f"Ann {i} did.", **more}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results go to a file of the current folder where none is named."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server(openai_server: Callable[..., OpenAIServer]) -> OpenAIServer:
    return openai_server(answer)


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs the command in this process: `run("score", path, ...)`."""
    return command


@pytest.fixture
def score(run: Callable[..., Result], server: OpenAIServer) -> Callable[..., Result]:
    """Runs `ragstone score` with the loopback judge: `score(path, "--metric", ...)`."""
    return lambda *args, **settings: run("score", "--llm", server.url, *args, **settings)


@pytest.fixture
def process() -> Any:
    """Starts the command as a process of its own, with pipes; kills it after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*args: Any, code: str | None = None, **settings: Any) -> subprocess.Popen[bytes]:
        program = ["-m", "ragstone"] if code is None else ["-c", code]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, *program, *map(str, args)]
        started.append(subprocess.Popen(command, **{**pipes, **settings}))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()
        for pipe in (each.stdin, each.stdout, each.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def rows(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows, given as objects or as bytes, one a line, and returns the file."""

    def write(*given: Any, name: str = "rows.jsonl") -> Path:
        lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in given]
        path = tmp_path / name
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    return write


@pytest.fixture
def six(rows: Callable[..., Path]) -> Path:
    return rows(*(row(i) for i in range(6)))
