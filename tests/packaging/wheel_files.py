"""Compare a wheel's files with those of core/ and integrations/: nothing missing, nothing astray."""

import sys
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]


def problems(wheel: Path, root: Path = ROOT) -> list[str]:
    """Return what is missing from the wheel, and what it should not hold."""
    sources = {
        path.relative_to(root / top).as_posix()
        for top in ("core", "integrations")
        for package in (root / top).glob("ragstone*")
        for path in package.rglob("*")
        if path.suffix in (".py", ".typed", ".json", ".html", ".css", ".js")
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    metadata = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    typed = {f"{PurePosixPath(name).parts[0]}/py.typed" for name in sources}
    missing = [f"missing: {name}" for name in sorted((sources | typed) - names)]
    if not any(name.endswith("licenses/LICENSE") for name in metadata):
        missing.append("missing: the licence")
    return missing + [f"astray: {name}" for name in sorted(names - metadata - sources)]


if __name__ == "__main__":
    wheel = Path(sys.argv[1])
    sys.exit("\n".join(problems(wheel)) or print(f"{wheel.name}: {wheel.stat().st_size / 1e3:.0f} kB"))
