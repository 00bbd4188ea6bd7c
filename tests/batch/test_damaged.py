"""Damaged files of every format: none ends the process, and each is rows, bad lines or a sentence."""

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = [
    {"question": f"Who wrote book {i}?", "contexts": [f"Author {i} wrote it.", "It rains."], "answer": f"Author {i}."}
    for i in range(40)
]
FILES = 500
_READ = """
import sys
from pathlib import Path
from ragstone.sources import BadLine, SourceError, rows_of

for path in sorted(Path(sys.argv[1]).iterdir()):
    print(path, flush=True)
    try:
        for row in rows_of(path):
            assert isinstance(row, BadLine) or row.sample
    except SourceError as error:
        assert str(error)
"""


def _csv(path):
    lines = ["question,contexts,answer"]
    for row in ROWS:
        contexts = json.dumps(row["contexts"]).replace('"', '""')
        lines.append(f'{row["question"]},"{contexts}",{row["answer"]}')
    path.write_text("\n".join(lines))


def _jsonl(path):
    path.write_text("\n".join(map(json.dumps, ROWS)))


def _json(path):
    path.write_text(json.dumps(ROWS, indent=1))


def _packed(path):
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, ROWS)).encode()))


def _table():
    return pytest.importorskip("pyarrow").Table.from_pylist(ROWS)


def _parquet(path):
    pytest.importorskip("pyarrow.parquet").write_table(_table(), path)


def _feather(path):
    pytest.importorskip("pyarrow.feather").write_feather(_table(), path, compression="uncompressed")


def _stream(path):
    table = _table()
    with pytest.importorskip("pyarrow").ipc.new_stream(str(path), table.schema) as target:
        target.write_table(table, max_chunksize=10)


FORMATS = {
    "a.jsonl": _jsonl,
    "a.json": _json,
    "a.csv": _csv,
    "a.jsonl.gz": _packed,
    "a.parquet": _parquet,
    "a.feather": _feather,
    "a.arrow": _stream,
}


def mutated(whole, chance):
    """Return the bytes with some of them flipped, cut, repeated or replaced."""
    damaged = bytearray(whole)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(damaged) or 1)
        how = chance.randrange(4)
        if how == 0:
            damaged[at : at + 1] = bytes([chance.randrange(256)])
        elif how == 1:
            damaged[at : at + 4] = chance.choice([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"])
        elif how == 2:
            del damaged[at : at + chance.randint(1, 64)]
        else:
            damaged[at:at] = damaged[at : at + chance.randint(1, 64)]
    return bytes(damaged)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder"), [*((name, False) for name in FORMATS), ("a.arrow", True)])
def test_no_damaged_file_ends_the_process(name, folder, tmp_path):
    FORMATS[name](tmp_path / name)
    whole, chance = (tmp_path / name).read_bytes(), random.Random(37)
    files = tmp_path / "files"
    files.mkdir()
    for number in range(FILES):
        path = files / f"{number:03}-{name}"
        if folder:  # as Hugging Face's save_to_disk writes it
            path.mkdir()
            (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
            path /= name
        path.write_bytes(mutated(whole, chance))
    done = subprocess.run([sys.executable, "-c", _READ, str(files)], capture_output=True, text=True, check=False)
    read = done.stdout.split()
    assert (done.returncode, done.stderr, len(read)) == (0, "", FILES), f"{Path(read[-1]).name}: {done.stderr[-2000:]}"
