"""What every sink does, whatever it writes to."""

import json
import pickle
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.live import CallableSink, Health, OpenTelemetrySink, Sink
from ragstone.plain import clean_text

from ..support.programs import finish  # noqa: TID252 - under importlib mode tests are no package
from .cases import Case, restore_text, score, unscored, with_metadata
from .scripts import start

HOSTILE = [
    "a\x00b",
    "a\ud83db",
    "\ud83d\ude00",
    "\\u0000 and \\ud83d and \\u005c",
    "\x1b[31m\x07\x7f\x85\u2028\ufeff\r\n",
    "\u202eevil\u2066",
    "'; DROP TABLE outcomes; -- \\' :reason %s %(reason)s ? $1",
    "",
    "\u00e9" * 1_000_000,
    *["x" * 100_000 + end for end in ("a", "b", "\ud800", "\ud801")],  # which stay apart where they are shortened
]


def test_batches_of_any_size_stay_in_order(case: Case) -> None:
    case.sink.write([])
    case.sink.write([score(f"run-{i:04}") for i in range(2_000)])
    assert [kept.sample_id for kept in case.read()] == [f"run-{i:04}" for i in range(2_000)]


def test_the_same_again(case: Case) -> None:
    case.sink.write([score(text="first"), score(text="later"), unscored("run-2", detail="after 30 s")])
    case.sink.write([score(text="last")])
    lack = "after 30 s" if case.kind == "otel" else "timeout"
    expected = ["last", lack] if case.keyed else ["first", "later", lack, "last"]
    assert [kept.text for kept in case.read()] == expected


def test_hostile_texts(case: Case) -> None:
    for text in HOSTILE:
        origin = {"trace_id": text, "span_id": text}
        case.sink.write([score(text, text=text or "-", judge=text, chosen_by=text, origin=origin)])
    expected = [(case.id_of(text), text or "-") for text in HOSTILE]
    if case.kind == "jsonl":  # where two halves, each written as an escape, are read as one character
        expected = [(json.loads(json.dumps(name)), json.loads(json.dumps(text))) for name, text in expected]
    assert sorted((kept.sample_id, kept.text) for kept in case.read()) == sorted(expected)


class Odd:
    def __len__(self) -> int:
        raise RuntimeError("no")


INF, NAN = float("inf"), float("nan")
LOOP: list = []
LOOP.append(LOOP)
DEEP: list = []
for _ in range(sys.getrecursionlimit()):
    DEEP = [DEEP]


def test_hostile_metadata_and_numbers(case: Case) -> None:
    metadata = {
        "nan": NAN,
        "infinite": [INF, -INF],
        "big": 2**70,
        "too big to print": 10**5000,
        "half\ud83d": "\x00\ud83d",
        "set": {1},
        "keys": {1: "a", None: "b", (1, 2): "c"},
        "loop": LOOP,
        "deep": DEEP,
        "odd": Odd(),
    }
    record = with_metadata(metadata)
    usage = record.outcome.usage.model_copy(update={"input_tokens": 2**70, "llm_calls": -(2**70), "seconds": NAN})
    numbers = {"outcome": record.outcome.model_copy(update={"usage": usage}), "submitted_at": INF, "scored_at": NAN}
    case.sink.write([replace(record, **numbers)])
    (kept,) = case.read()
    if kept.metadata is not None and case.kind != "call":
        found = kept.metadata
        assert [found["nan"], *found["infinite"]] == ["NaN", "Infinity", "-Infinity"]
        assert found["big"] == 2**70
        assert found["too big to print"] == hex(10**5000)
        assert found["half\ud83d"] == "\x00\ud83d"
        assert found["set"] == [1]
        assert found["keys"] == {"1": "a", "null": "b", "[1, 2]": "c"}
        assert found["odd"] == "<Odd>"


def test_health_and_origin(case: Case) -> None:
    health = Health(
        process="host-1\x00", at=10.0, started_at=1.0, counts={"scored": 2**70}, reasons={"dropped": {"x": 1}}
    )
    case.sink.health(health)
    case.sink.health(health.model_copy(update={"at": 11.0, "longest_queue": 7}))
    if case.keyed:
        assert case.query("SELECT process, at, longest_queue, reasons FROM health") == [
            ("host-1\\u0000", 11.0, 7, '{"dropped": {"x": 1}}')
        ]
    assert case.sink.origin() is None


def picklable(case: Case) -> Sink:
    if case.kind == "call":
        return CallableSink(len)
    return OpenTelemetrySink() if case.kind == "otel" else case.sink


def test_pickle_and_close(case: Case) -> None:
    case.sink.write([score("run-1")])  # open, which no pickle may hold
    sink = picklable(case)
    again = pickle.loads(pickle.dumps(sink))
    assert "p@ss" not in sink.name + repr(sink)
    assert (type(again), again.name) == (type(sink), sink.name)
    for name in ("run-2", "run-3"):  # a closed one opens again
        again.write([score(name)])
        again.close()
    if case.kind not in ("call", "otel"):
        assert [kept.sample_id for kept in case.read()] == ["run-1", "run-2", "run-3"]


FORK = """
sink.write([record("parent-1")])
there, back = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    sink.write([record("child-1")])
    os.write(back[1], b"x")
    os.read(there[0], 1)  # now the parent has closed its own
    sink.write([record("child-2")])
    if number == 0:
        os._exit(0)  # as if killed: nothing is closed, nothing is flushed
    sink.close()
    sys.exit(0)  # the ordinary end, with everything that Python tears down
os.read(back[0], 1)
sink.write([record("parent-2")])
sink.close()
os.write(there[1], b"x")
_, status = os.waitpid(child, 0)
sink.write([record("parent-3")])
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
@pytest.mark.parametrize(("kind", "ends"), [("sqlite", 0), ("sqlite", 1), ("postgres", 0), ("jsonl", 0), ("otel", 1)])
def test_fork_after_first_use(make, kind: str, ends: int) -> None:
    case = make(kind)
    finish(start(FORK, picklable(case), ends))
    if case.kind not in ("call", "otel"):
        names = sorted(kept.sample_id for kept in case.read())
        assert names == ["child-1", "child-2", "parent-1", "parent-2", "parent-3"]


# Made of what the escapes are made of, so that texts that look escaped are common.
TRICKY = st.text(st.sampled_from(["\\", "u", "0", "5", "c", "d", "8", "\x00", "\ud800", "\udfff", "é"]), max_size=12)


@given(TRICKY)
def test_nothing_is_lost(text: str) -> None:
    cleaned = clean_text(text)
    assert restore_text(cleaned) == text
    assert "\x00" not in cleaned
    cleaned.encode()  # no half pairs
