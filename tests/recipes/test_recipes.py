"""The programs of examples/recipes, each in a process of its own, with the tool's own package and no cloud."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import ragstone

from ..compat.judging import answer  # noqa: TID252 - under importlib mode tests are no package
from ..support.http_server import HTTPServer, Request  # noqa: TID252
from ..support.openai_server import OpenAIServer  # noqa: TID252

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
DATASET = {
    "id": "d", "name": "questions", "description": None, "metadata": {}, "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z", "example_count": 1,
}  # fmt: skip
EXAMPLE = {
    "id": "e", "input": {"question": "Who wrote Emma?"}, "output": {}, "metadata": {},
    "updated_at": "2026-01-01T00:00:00Z",
}  # fmt: skip

pytestmark = pytest.mark.skipif(not RECIPES.is_dir(), reason="needs the checkout: examples/")


@pytest.fixture
def model(openai_server: Callable[..., OpenAIServer]) -> OpenAIServer:
    return openai_server(answer)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECIPES, tmp_path, dirs_exist_ok=True))


def run(folder: Path, model: OpenAIServer, *command: str, **environ: str) -> str:
    path = os.pathsep.join([str(Path(ragstone.__file__).parents[1]), str(folder)])
    environ = {"PYTHONPATH": path, "OPENAI_API_KEY": "a key", "OPENAI_BASE_URL": model.url, **environ}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def unscored(model: OpenAIServer) -> None:
    """From now on the response makes no claim: faithfulness is undefined."""
    model.reply = lambda body: '{"claims": []}' if "List the claims" in str(body["messages"]) else answer(body)


def needs(package: str, installs: str) -> None:
    if find_spec(package.partition(".")[0]) is None or find_spec(package) is None:
        pytest.skip(f"needs {installs}; the gate `recipes` installs it")


def test_mlflow(folder: Path, model: OpenAIServer) -> None:
    needs("mlflow", "mlflow")
    quiet = {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/runs.db", "MLFLOW_DISABLE_TELEMETRY": "true"}
    printed = run(folder, model, sys.executable, "with_mlflow.py", **quiet)
    assert "'faithfulness/mean': " in printed
    assert "'response_completeness/mean': " in printed
    unscored(model)
    printed = run(folder, model, sys.executable, "with_mlflow.py", **quiet)
    assert "'faithfulness/mean'" not in printed
    assert "'response_completeness/mean': " in printed


@pytest.fixture
def langfuse() -> HTTPServer:
    needs("langfuse", "langfuse")
    said = {"data": [{"id": "1"}], "successes": [], "errors": []}
    with HTTPServer(lambda _: (200, json.dumps(said).encode())) as server:
        yield server


def of_langfuse(server: HTTPServer) -> dict[str, str]:
    return {"LANGFUSE_BASE_URL": server.url, "LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"}


def test_langfuse_experiment(folder: Path, model: OpenAIServer, langfuse: HTTPServer) -> None:
    printed = run(folder, model, sys.executable, "with_langfuse.py", **of_langfuse(langfuse))
    assert "faithfulness: 1.000" in printed
    unscored(model)
    printed = run(folder, model, sys.executable, "with_langfuse.py", **of_langfuse(langfuse))
    assert "faithfulness_unscored: undefined" in printed


@pytest.fixture
def phoenix() -> HTTPServer:
    needs("phoenix.client", "arize-phoenix-client")

    def answered(request: Request) -> tuple[int, bytes]:
        said = {"data": [DATASET], "next_cursor": None}
        if "/examples" in request.path:
            said = {"data": {"dataset_id": "d", "version_id": "v", "examples": [EXAMPLE]}}
        elif request.path.endswith("/datasets/d"):
            said = {"data": DATASET}
        return 200, json.dumps(said).encode()

    with HTTPServer(answered) as server:
        yield server


def test_phoenix_experiment(folder: Path, model: OpenAIServer, phoenix: HTTPServer) -> None:
    script = folder / "with_phoenix.py"
    script.write_text(script.read_text() + "print([run.result for run in experiment['evaluation_runs']])\n")
    printed = run(folder, model, sys.executable, script.name, PHOENIX_COLLECTOR_ENDPOINT=phoenix.url)
    assert "'faithfulness'" in printed
    assert "'score': 1.0" in printed


def test_pydantic_evals(folder: Path, model: OpenAIServer) -> None:
    needs("pydantic_evals", "pydantic-evals")
    printed = run(folder, model, sys.executable, "with_pydantic_evals.py")
    assert "faithfulness: 1.00" in printed
    unscored(model)
    assert "faithfulness: undefined" in run(folder, model, sys.executable, "with_pydantic_evals.py")


def test_promptfoo(folder: Path, model: OpenAIServer) -> None:
    promptfoo = shutil.which("promptfoo")
    if promptfoo is None:
        pytest.skip("needs promptfoo: npm install --global promptfoo")
    said = json.dumps({"answer": "Jane Austen.", "contexts": ["Emma is by Jane Austen."]})
    (folder / "provider.py").write_text(f"def call_api(prompt, options, context):\n    return {{'output': {said!r}}}\n")
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(folder)}
    command = (promptfoo, "eval", "-c", "promptfooconfig.yaml", "--no-cache", "-o", "out.json")
    run(folder, model, *command, PROMPTFOO_PYTHON=sys.executable, **quiet)
    (result,) = json.loads((folder / "out.json").read_text())["results"]["results"]
    assert (result["success"], result["score"]) == (True, 1.0)
