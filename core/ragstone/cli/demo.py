"""`ragstone demo`: a small set scored from recorded replies of the embedded judge, with no model and no download."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragstone.batch.evaluate import evaluate
from ragstone.cli.options import NotThere
from ragstone.cli.output import coloured
from ragstone.identity import reply_key
from ragstone.judge import Asking, LLMReply, LLMRequest
from ragstone.outcome import Outcome, Score
from ragstone.report import Report
from ragstone.sample import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECORDING = Path(__file__).with_name("demo.json")
REMAKE = "the prompts have changed since it was made; python tests/cli/record_demo.py makes it anew"
_NAME = "ragstone demo"
_LOW = 0.7
_NEXT = """Next:
  ragstone demo --samples shoes.jsonl                  write these samples to a file
  pip install "ragstone[local]" && ragstone pull       get the judge itself (1.1 GB, once)
  ragstone score shoes.jsonl --explain                 score them by it
  ragstone score yours.jsonl --llm openai:gpt-5-mini   score yours, by another judge"""


class Recorded:
    """The embedded judge and embedder, as they once answered."""

    asking: Asking = "one_by_one"
    gives_probabilities = True

    def __init__(self, recording: dict[str, Any]) -> None:
        self.model = f"{recording['judge']} (recorded {recording['date']})"
        self._replies, self._places = recording["replies"], recording["places"]

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer as recorded."""
        reply = self._replies.get(reply_key(request, "demo"))
        if reply is None:
            raise LookupError(f"the recording has no reply to {request.task}: {REMAKE}")
        return LLMReply(*reply)

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Place texts as recorded."""
        import numpy as np

        if missing := [text for text in texts if text not in self._places]:
            raise LookupError(f"the recording has no place for {missing[0]!r}: {REMAKE}")
        return np.array([self._places[text] for text in texts], dtype=np.float32)

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer as recorded."""
        return self.generate(request)

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Place texts as recorded."""
        return self.embed(texts)


def scored(recording: dict[str, Any]) -> Report:
    """Return the report of a recording's samples."""
    judge = Recorded(recording)
    return evaluate(recording["samples"], "rag", llm=judge, embedder=judge, progress=False, name=_NAME)


@click.command(short_help="See scores in seconds: no model, no download.")
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False),
    default="ragstone-demo.html",
    show_default=True,
    metavar="HTML",
    help="The report's file. A file that is there and is no report of this command is left as it is.",
)
@click.option(
    "--samples",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Only write the samples. A file that holds another text is left as it is.",
)
def demo(page: str, samples: str | None) -> None:
    """Score six answers about returning shoes, by the metrics of the group rag.

    The replies of the embedded judge were recorded: nothing is asked, and nothing fetched. The scores are computed
    from them as always.
    """
    recording = json.loads(RECORDING.read_text("utf-8"))
    if samples is not None:
        _write_samples(Path(samples), "".join(f"{json.dumps(sample)}\n" for sample in recording["samples"]).encode())
        click.echo(f"{len(recording['samples'])} samples are in {samples}. Next: ragstone score {samples}")
        return
    report = scored(recording)
    outcomes: dict[int, list[Outcome]] = {}
    for record in report.results():
        outcomes.setdefault(record.row, []).append(record.outcome)
    click.echo(f"{report}\n")
    for row, sample in enumerate(recording["samples"]):
        click.echo("\n".join(_lines(Sample(**sample), outcomes[row])) + "\n")
    click.echo(
        f"The replies are recorded, of {recording['judge']} on {recording['date']}. No model was asked just now."
    )
    _write(report, Path(page))
    click.echo(_NEXT)


def _write_samples(path: Path, content: bytes) -> None:
    """Write them to a new file, unless they are there already."""
    try:
        if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
            return
        with path.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise NotThere(f"--samples {path}: cannot write: {error.strerror}") from None


def _lines(sample: Sample, outcomes: Sequence[Outcome]) -> list[str]:
    """Return a sample and its scores as lines, and what cost most of each that is low."""
    shown = [f"{each.metric} {f'{each.value:.2f}' if isinstance(each, Score) else 'unscored'}" for each in outcomes]
    lines = [
        coloured(f"{sample.id}", bold=True),
        f"  question: {sample.user_input}",
        f"  answer:   {sample.response}",
        f"  {'  '.join(shown)}",
    ]
    for low in (each for each in outcomes if isinstance(each, Score) and each.value < _LOW):
        costs = sorted((v.probability or 0.0, v.kind, v.text, v.verdict) for v in low.verdicts if v.lowers_score)
        why = low.reason.split(". ")[0]
        if costs and costs[0][0] < 0.5:
            why = f'the {costs[0][1]} "{costs[0][2]}" ({costs[0][3]})'
        lines.append(f"  {low.metric} lost points by: {why}")
    return lines


def _write(report: Report, page: Path) -> None:
    try:
        if page.exists() and f"<title>{_NAME}" not in page.read_text("utf-8", "replace"):
            raise FileExistsError(0, "there is another file of this name; name one by --report")
        report.save(page)
    except OSError as error:
        click.echo(f"No report was written to {page}: {error.strerror}", err=True)
    else:
        click.echo(f"Report: {page}. Open it in a browser: {page.absolute().as_uri()}")
