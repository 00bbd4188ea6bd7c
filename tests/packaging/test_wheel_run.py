"""In the wheel's own run (the gate pythons) it is the installed wheel that is tested, and not the sources."""

import os
import sysconfig
from pathlib import Path

import pytest

import ragstone


@pytest.mark.skipif(os.environ.get("RAGSTONE_TESTED_FROM") != "wheel", reason="not the wheel's own run")
def test_ragstone_comes_from_site_packages() -> None:
    assert Path(ragstone.__file__).parents[1] == Path(sysconfig.get_path("purelib"))
