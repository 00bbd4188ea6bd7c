"""What every sink does, whatever it writes to."""

import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from ragstone.sinks import CallableSink, Health, OpenTelemetrySink, Sink

from ..support.programs import finish  # noqa: TID252 - under importlib mode tests are no package
from .cases import Case, score, unscored, with_metadata
from .scripts import start

HOSTILE = {
    "nul": "a\x00b",
    "high surrogate": "a\ud83db",
    "low surrogate": "\ude00",
    "two halves": "\ud83d\ude00",
    "written escape": "\\u0000 and \\ud83d and \\u005c",
    "control": "\x1b[31m\x07\x7f\x85\u2028\ufeff\r\n",
    "right to left": "\u202eevil\u2066",
    "sql": "'; DROP TABLE outcomes; -- \\' :reason %s %(reason)s ? $1",
    "markup": "</script><script>alert(1)</script>",
    "beyond the BMP": "\U0001f44d\U0010ffff",
    "empty": "",
    "a megabyte": "\u00e9" * 1_000_000,
}


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_a_batch(case: Case, count: int) -> None:
    case.sink.write([score(f"run-{i:04}") for i in range(count)])
    if count or not case.keyed:  # with nothing to write there need be no table
        assert [kept.sample_id for kept in case.read()] == [f"run-{i:04}" for i in range(count)]


def test_a_score_and_its_lack(case: Case) -> None:
    case.sink.write([score("run-1", text="1 of 2."), unscored("run-2", detail="after 30 s")])
    reasons = [kept.text for kept in case.read()]
    assert reasons == ["1 of 2.", "after 30 s" if case.kind == "otel" else "timeout"]


def test_the_same_again(case: Case) -> None:
    first, later, last = score(text="first"), score(text="later"), score(text="last")
    case.sink.write([first, later])
    case.sink.write([last])
    assert [kept.text for kept in case.read()] == (["last"] if case.keyed else ["first", "later", "last"])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(case: Case, name: str) -> None:
    text = HOSTILE[name]
    origin = {"trace_id": text, "span_id": text}
    case.sink.write([score(text, text=text or "-", judge=text, chosen_by=text, origin=origin)])
    (kept,) = case.read()
    expected = case.id_of(text), text or "-"
    if case.kind == "jsonl":  # where two halves, each written as an escape, are read as one character
        expected = json.loads(json.dumps(expected[0])), json.loads(json.dumps(expected[1]))
    assert (kept.sample_id, kept.text) == expected


def test_long_ids_stay_apart(case: Case) -> None:
    ids = ["x" * 100_000 + end for end in ("a", "b", "\ud800", "\ud801")]
    case.sink.write([score(one) for one in ids])
    assert len({kept.sample_id for kept in case.read()}) == 4


class Odd:
    def __len__(self) -> int:
        raise RuntimeError("no")


LOOP: list = []
LOOP.append(LOOP)
DEEP: list = []
for _ in range(sys.getrecursionlimit()):
    DEEP = [DEEP]


def test_hostile_metadata(case: Case) -> None:
    metadata = {
        "nan": float("nan"),
        "infinite": [float("inf"), float("-inf")],
        "big": 2**70,
        "too big to print": 10**5000,
        "half\ud83d": "\x00\ud83d",
        "set": {1},
        "keys": {1: "a", None: "b", (1, 2): "c"},
        "loop": LOOP,
        "deep": DEEP,
        "odd": Odd(),
    }
    case.sink.write([with_metadata(metadata)])
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


def test_numbers_that_no_column_holds(case: Case) -> None:
    outcome = score().outcome
    usage = outcome.usage.model_copy(update={"input_tokens": 2**70, "llm_calls": -(2**70), "seconds": float("nan")})
    record = score(submitted_at=float("inf"), scored_at=float("nan"))
    case.sink.write([record.model_copy(update={"outcome": outcome.model_copy(update={"usage": usage})})])
    assert len(case.read()) == 1


def test_threads_at_once(case: Case) -> None:
    barrier = Barrier(2)

    def write(number: int) -> None:
        barrier.wait(30)
        for i in range(20):
            case.sink.write([score(f"{number}-{i}-{j}") for j in range(5)])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    assert len({kept.sample_id for kept in case.read()}) == 200


def test_write_after_close(case: Case) -> None:
    case.sink.write([score("run-1")])
    case.sink.close()
    case.sink.close()
    case.sink.write([score("run-2")])
    assert [kept.sample_id for kept in case.read()] == ["run-1", "run-2"]


def test_health_and_origin(case: Case) -> None:
    health = Health(
        process="host-1\x00", at=10.0, started_at=1.0, counts={"scored": 2**70}, reasons={"dropped": {"x": 1}}
    )
    case.sink.health(health)
    case.sink.health(health.model_copy(update={"at": 11.0, "longest_queue": 7}))
    if case.query:
        assert case.query("SELECT process, at, longest_queue, reasons FROM health") == [
            ("host-1\\u0000", 11.0, 7, '{"dropped": {"x": 1}}')
        ]
    assert case.sink.origin() is None


def picklable(case: Case) -> Sink:
    if case.kind == "call":
        return CallableSink(len)
    return OpenTelemetrySink() if case.kind == "otel" else case.sink


def test_pickle(case: Case) -> None:
    case.sink.write([score("run-1")])  # open, which no pickle may hold
    sink = picklable(case)
    again = pickle.loads(pickle.dumps(sink))
    assert (type(again), again.name, repr(again)) == (type(sink), sink.name, repr(sink))
    again.write([score("run-2")])
    again.close()
    if again.name == case.sink.name and case.kind not in ("call", "otel"):
        assert [kept.sample_id for kept in case.read()] == ["run-1", "run-2"]


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
@pytest.mark.parametrize("end", [0, 1], ids=["child killed", "child ends"])
def test_fork_after_first_use(case: Case, end: int) -> None:
    finish(start(FORK, picklable(case), end))
    if case.kind not in ("call", "otel"):
        names = sorted(kept.sample_id for kept in case.read())
        assert names == ["child-1", "child-2", "parent-1", "parent-2", "parent-3"]


def test_names_differ(case: Case) -> None:
    assert isinstance(case.sink, Sink)
    assert case.sink.name
    assert "p@ss" not in case.sink.name + repr(case.sink)
