"""CI runs what README tells a newcomer to run, and the gates cover what pyproject.toml has."""

import importlib.metadata
import re
from pathlib import Path


def test_ci_runs_readmes_test_command(repository: Path) -> None:
    blocks = re.findall(
        r"^```bash\n(.*?)^```$", (repository / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    script = (repository / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert script[-1] == blocks[-1].strip()
    assert script[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in script


def test_the_gates_install_every_extra(repository: Path) -> None:
    installed = re.search(r'^EXTRAS = "(.*?)"', (repository / "noxfile.py").read_text("utf-8"), re.MULTILINE)
    extras = importlib.metadata.metadata("ragstone").get_all("Provides-Extra") or []
    assert sorted(installed[1].split(",")) == sorted(extras)
