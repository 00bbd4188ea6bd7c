"""`kill -9` at every moment of a run through a batch endpoint: it goes on where it was, and nothing is paid twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ragstone.batch.provider import ProviderBatch
from ragstone.clients import OpenAICompatible

from ..support.batch_server import CLOSE, BatchServer  # noqa: TID252 - under importlib mode tests are no package
from .provider_judge import MODEL, all_five, judge, plain, rows

SCRIPT = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from ragstone import AlignmentCoverage, ContextRelevancy, ResponseCompleteness, ResponseRelevancy, SummarizationScore
from ragstone.batch.provider import ProviderBatch
from ragstone.clients import OpenAICompatible

url, model, folder, samples = sys.argv[2:6]
llm = OpenAICompatible(model, base_url=url, max_retries=0)
metrics = [SummarizationScore(llm=llm), AlignmentCoverage(llm=llm), ResponseRelevancy(llm=llm, embedder=llm),
           ContextRelevancy(llm=llm), ResponseCompleteness(llm=llm)]
batch = ProviderBatch(llm, folder=folder, poll_seconds=0.01, max_requests=9)
report = batch.run(json.loads(samples), metrics)
print(json.dumps([[r.row, r.sample_id, r.draw, r.judge, r.outcome.model_dump(exclude={"usage": {"seconds"}})]
                  for r in report.results()]))
"""
N = 3
pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")


class Victim:
    """The run in a process of its own."""

    def __init__(self, server: BatchServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def run(self) -> bytes:
        """Run until the end or until killed; return what it printed."""
        arguments = (json.dumps(sys.path), self._server.url, MODEL, str(self._folder), json.dumps(rows(N)))
        with subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], stdout=subprocess.PIPE) as self.process:
            output, _ = self.process.communicate(timeout=120)
        assert self.process.returncode in (0, -signal.SIGKILL)
        return output

    def kill(self) -> None:
        while self.process is None:
            time.sleep(0.001)
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def unbroken(tmp_path):
    """What an unbroken run finds, and how many requests a model is run on for it."""
    with BatchServer(judge) as server, OpenAICompatible(MODEL, base_url=server.url) as llm:
        report = ProviderBatch(llm, folder=tmp_path / "unbroken", poll_seconds=0.01).run(rows(N), all_five(llm))
        return json.loads(json.dumps(plain(report.results()))), len(server.ran), len(server.direct)


@pytest.mark.slow
def test_killed_at_every_request(unbroken, tmp_path):
    """The server kills it when a request has taken effect and before it is answered, once for each kind of request."""
    expected, ran, direct = unbroken
    killed: set[tuple[str, str, int]] = set()
    with BatchServer(judge) as server:
        victim = Victim(server, tmp_path / "run")

        def strike(method, path, s):
            moment = (method, path, len(s.batches))
            if path.startswith(("/files", "/batches")) and moment not in killed:
                killed.add(moment)
                victim.kill()
                return CLOSE
            return None

        server.before_answer = strike
        runs = 1
        while not (output := victim.run()):
            runs += 1
            assert runs < 60
        assert json.loads(output) == expected
        assert runs > 10
        assert Counter(server.ran.values()) == {1: ran}
        assert len(server.direct) == direct
        assert len(server.batches) == len({batch["input_file_id"] for batch in server.batches})


def test_killed_while_a_batch_is_begun(tmp_path):
    """The one moment at which money could be lost: the batch runs, and nobody has written down its name."""
    killed: list[str] = []
    with BatchServer(judge) as server:
        victim = Victim(server, tmp_path / "run")

        def strike(method, path, s):
            if (method, path) == ("POST", "/batches") and not killed:
                killed.append(path)
                victim.kill()
                return CLOSE
            return None

        server.before_answer = strike
        assert victim.run() == b""
        assert len(server.batches) == 1
        results = json.loads(victim.run())
        assert len(results) == 5 * N
        assert set(server.ran.values()) == {1}
        assert server.log.count(("POST", "/batches")) == len(server.batches) == len(server.uploads)
