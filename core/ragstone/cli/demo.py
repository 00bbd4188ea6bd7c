"""`ragstone demo`: a small set scored from recorded replies of the embedded judge, with no model and no download."""

import json
import shlex
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from ragstone.batch.evaluate import evaluate
from ragstone.cli.options import NotThere, json_option
from ragstone.cli.output import as_called, called, evidence_lines, sample_lines, write_page
from ragstone.identity import digest_of, reply_key
from ragstone.judge import BaseEmbedder, BaseLLM, LLMReply, LLMRequest
from ragstone.plain import to_json
from ragstone.report import Report
from ragstone.results.record import decode_reply
from ragstone.sample import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECORDING = Path(__file__).with_name("demo.json")
_FOLDER = "ragstone-demo"
_NEXT = """Next, write these samples to a file, get the judge itself (1.1 GB, once), and score them, or your own:
  ragstone demo --samples shoes.jsonl
  pip install "ragstone[local]" && ragstone pull
  ragstone score shoes.jsonl --report shoes.html"""


class _RecordedJudge(BaseLLM):
    asking, gives_probabilities = "one_by_one", True

    def __init__(self, model: str, replies: Mapping[str, str]) -> None:
        self.model, self._replies = model, replies

    def generate(self, request: LLMRequest, /) -> LLMReply:
        return cast("LLMReply", decode_reply(self._replies[reply_key(request, "demo")]))


class _RecordedEmbedder(BaseEmbedder):
    def __init__(self, model: str, vectors: Mapping[str, Sequence[float]]) -> None:
        self.model, self._vectors = model, vectors

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        import numpy as np

        return np.array([self._vectors[digest_of(text)] for text in texts], dtype=np.float32)


def demo_report(recording: dict[str, Any]) -> Report:
    """The report of a recording's samples."""
    model = f"{recording['judge']} (recorded {recording['date']})"
    judge = _RecordedJudge(model, recording["replies"])
    embedder = _RecordedEmbedder(model, recording["vectors"])
    return evaluate(recording["samples"], "rag", llm=judge, embedder=embedder, progress=False, name="ragstone demo")


@click.command(short_help="See scores in seconds: no model, no download.")
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False),
    metavar="HTML",
    help="The report's file. A file that is there is replaced. Default: ragstone-demo/report.html, in a folder that "
    "git ignores.",
)
@click.option(
    "--samples",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Only write the samples. A file that holds another text is left as it is.",
)
@json_option
def demo(page: str | None, samples: str | None, as_json: bool) -> None:
    """Score six answers about returning shoes, by the metrics of the group rag.

    The replies of the embedded judge were recorded: nothing is asked, and nothing fetched. The scores are computed
    from them as always.
    """
    recording = json.loads(RECORDING.read_text("utf-8"))
    if samples is not None:
        _write_samples(Path(samples), "".join(f"{json.dumps(sample)}\n" for sample in recording["samples"]).encode())
        next_ = f"{called()} score {shlex.quote(samples)}"
        line = f"{len(recording['samples'])} samples are in {samples}. Next: {next_}"
        click.echo(to_json({"samples": samples, "next": next_}) if as_json else line)
        return
    report = demo_report(recording)
    page = page or _in_folder()
    write_page("--report", page, report.html())
    if as_json:
        click.echo(to_json({"page": page, **report.figures()}))
        return
    _show(report, recording)
    click.echo(f"Report: {page}. Open it in a browser: {Path(page).absolute().as_uri()}\n{as_called(_next())}")


def _next() -> str:
    return _NEXT if find_spec("xllamacpp") is None else _NEXT.replace('pip install "ragstone[local]" && ', "")


def _show(report: Report, recording: Mapping[str, Any]) -> None:
    click.echo(report)
    row = -1
    for record in report.results():
        if record.row != row:
            click.echo("\n".join(["", *sample_lines(Sample(**recording["samples"][record.row]), contexts=False)]))
        row = record.row
        click.echo("\n".join(evidence_lines(record.sample_id, record.outcome, full=False)))
    click.echo(
        f"\nThe replies are recorded, of {recording['judge']} on {recording['date']}. No model was asked just now."
    )


def _in_folder() -> str:
    """The page's path in a folder that git ignores."""
    folder = Path(_FOLDER)
    try:
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
    except OSError as error:
        raise NotThere(f"{folder}: cannot write: {error.strerror}; name a file with --report") from None
    return str(folder / "report.html")


def _write_samples(path: Path, content: bytes) -> None:
    """Write them to a new file, unless they are there already."""
    try:
        if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
            return
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise NotThere(f"--samples {path}: has another text already; name another file") from None
    except OSError as error:
        raise NotThere(f"--samples {path}: cannot write: {error.strerror}") from None
