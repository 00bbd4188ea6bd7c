"""Programs that tests run in processes of their own."""

import pickle
import subprocess
import textwrap
from collections.abc import Sequence

from ragstone.live import Sink

from ..support import programs  # noqa: TID252 - under importlib mode tests are no package
from ..support.programs import READY, finish_together  # noqa: TID252

COMMON = """
import os, pickle, sys
from ragstone import Score, Unscored
from ragstone.live import Record

sink = pickle.loads(bytes.fromhex(sys.argv[1]))
number = int(sys.argv[2])

def record(sample_id, text="x"):
    outcome = Score(metric="demo", value=0.5, reason=text, version="1")
    return Record(sample_id=sample_id, outcome=outcome, judge="j", submitted_at=1.0, scored_at=2.0)
"""

DISK = """
import resource
sink.write([record("before")])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
size = max(path.stat().st_size for path in sink.path.parent.iterdir())
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, hard))
batch = [record(f"run-{i}", "x" * 1000) for i in range(500)]
for _ in range(3):
    try:
        sink.write(batch)
    except Exception as error:
        print(type(error).__name__, "room" in str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
sink.write([record("after")])
"""


def start(script: str, sink: Sink, number: int = 0) -> subprocess.Popen:
    """Start a script with the sink, as it comes out of a pickle, as `sink`, and its number as `number`."""
    return programs.start(COMMON + READY + textwrap.dedent(script), pickle.dumps(sink).hex(), str(number))


def run_together(script: str, sinks: Sequence[Sink]) -> list[str]:
    """Run a script once for each sink at the same time; it says `ready()` before what matters."""
    return finish_together([start(script, sink, number) for number, sink in enumerate(sinks)])
