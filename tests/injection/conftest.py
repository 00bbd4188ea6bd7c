"""Loads benchmarks/injection, which is no installed package, under the name that it has when it is run."""

import importlib.util
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "injection"

if "injection" not in sys.modules:
    spec = importlib.util.spec_from_file_location(
        "injection", BENCHMARK / "__init__.py", submodule_search_locations=[str(BENCHMARK)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["injection"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["injection"])
