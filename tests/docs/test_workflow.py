"""The workflow that docs/ci.md shows: its steps run in a shell as GitHub runs them, on a small set, with a judge on loopback."""

import json
import os
import re
import subprocess
import sys

import pytest

from ragstone.report import MetricInfo

from ..report.reports import report  # noqa: TID252 - under importlib mode tests are no package
from ..support.judges import served  # noqa: TID252
from ..support.openai_server import OpenAIServer  # noqa: TID252
from .test_pages import ROOT

yaml = pytest.importorskip("yaml")
WORKFLOW = ROOT / "examples" / "ci" / "answers.yml"
ANSWER = 'import sys\nsys.stdout.write(open(sys.argv[1]).read().replace("None", "She wrote it."))\n'
pytestmark = pytest.mark.skipif(not WORKFLOW.is_file(), reason="needs the checkout: examples/")


def steps(text):
    (job,) = yaml.safe_load(text)["jobs"].values()
    return {each["name"]: each for each in job["steps"] if "run" in each}


@pytest.fixture
def workflow():
    return WORKFLOW.read_text("utf-8")


@pytest.fixture
def shell(tmp_path):
    """Runs a step as GitHub's runner does; `pip` and `gh` only say what they were asked."""
    programs = {
        "ragstone": f'exec "{sys.executable}" -m ragstone "$@"',
        "python": f'exec "{sys.executable}" "$@"',
        "pip": 'echo pip "$@"',
        "gh": 'echo gh "$@"; cat comparison.md',
    }
    (tmp_path / "bin").mkdir()
    for name, line in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)

    def run(step, **values):
        known = {"secrets.OPENAI_API_KEY": "sk-none", "github.token": "t", "github.event.number": "7"}
        env = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: known[m[1]], text)
            for name, text in step.get("env", {}).items()
        }
        own = {
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        }
        own |= {"GITHUB_REPOSITORY": "me/app", "PYTHONPATH": os.pathsep.join(sys.path)}
        (tmp_path / "step.sh").write_text(step["run"])
        command = ["bash", "-e", str(tmp_path / "step.sh")]
        return subprocess.run(
            command, env=os.environ | own | env | values, cwd=tmp_path, text=True, capture_output=True
        )

    return run


def test_all_steps_run(workflow, shell, tmp_path):
    rows = [
        {"id": f"q{i}", "user_input": "Who wrote Emma?", "retrieved_contexts": ["Jane Austen did."], "response": "None"}
        for i in range(200)
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "answer_questions.py").write_text(ANSWER)
    with OpenAIServer(served, models=["gpt-5-mini"]) as server:
        for name, step in steps(workflow).items():
            if name == "Compare with the base":  # which main's run made, by the same command
                (tmp_path / "base.jsonl").write_bytes((tmp_path / "new.jsonl").read_bytes())
            found = shell(step, OPENAI_BASE_URL=server.url)
            assert found.returncode == 0, f"{name}: {found.stdout}{found.stderr}"
    asked, *shown = found.stdout.splitlines()
    assert asked == "gh pr comment 7 --repo me/app --body-file comparison.md"
    assert "\n".join(shown) == (tmp_path / "summary.md").read_text().strip()
    assert any(line.startswith("- `faithfulness`: not worse by this judge: +0.000 ") for line in shown)


@pytest.mark.parametrize(
    ("new", "status", "strict"),
    [([0.5] * 200, 0, 0), ([0.1] * 200, 1, 1), ([0.1, 0.9] * 100, 0, 3), (None, 2, 2)],
    ids=["not worse", "worse", "cannot tell", "no file"],
)
def test_how_it_ends(workflow, shell, tmp_path, new, status, strict):
    metrics = [MetricInfo("demo", "1", "judge", (0.0, 1.0))]
    report([0.5] * 200, metrics=metrics).to_json(tmp_path / "base.jsonl")
    if new:
        report(new, metrics=metrics).to_json(tmp_path / "new.jsonl")
    kept = "\n".join(line for line in workflow.splitlines() if "delete this line" not in line)
    assert kept.count("\n") == workflow.count("\n") - 2, "one line is marked"
    for text, end in ((workflow, status), (kept, strict)):
        found = shell(steps(text)["Compare with the base"])
        assert found.returncode == end, found.stderr
        assert ("::warning::" in found.stdout) == (strict == 3)
