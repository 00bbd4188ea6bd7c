"""What a calibration from a few labels is worth on rows that it has not seen.

python benchmarks/held_out.py LABELLED.jsonl --map relevant=use.target.relevant --embedder local --labels 30 \
    --journal DIR/journal.db

Draws so many rows many times, makes a calibration of them as `ragstone calibrate` does, and scores the other rows with
and without it. The journal may be the one of `benchmarks/agreement`: the judge is not asked again then.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import click

from ragstone import ContextRelevancy
from ragstone.calibration import CalibrationError
from ragstone.calibration.agreement import changed, f1
from ragstone.calibration.fitting import find
from ragstone.calibration.labelled import Labelled
from ragstone.calibration.labels import LABELS, read_labels
from ragstone.calibration.making import gather, prepared
from ragstone.calibration.signals import WITH_EMBEDDER, WITHOUT_EMBEDDER, Signal
from ragstone.cli.input import parse_keys
from ragstone.cli.judges import EMBEDDER_HELP, JUDGE_HELP, make_embedder, make_llm


def held_out(samples: Sequence[Labelled], signals: Sequence[Signal], labels: int, splits: int) -> dict[str, object]:
    """Return sentence F1 on held-out rows: a row's figure is its mean over the splits that held it out."""
    before: dict[int, list[float]] = {}
    after: dict[int, list[float]] = {}
    better = 0
    for seed in range(splits):
        order = random.Random(seed).sample(range(len(samples)), len(samples))
        kept, rest = order[:labels], order[labels:]
        found = find([samples[i] for i in kept], "sentence", signals, seed=seed)
        limit = 0.5 if found.threshold is None else found.threshold
        gained = 0.0
        for i in rest:
            was = f1([p >= 0.5 for p in samples[i].judged], samples[i].labels)
            now = f1([p >= limit for p in found.fitted.apply(samples[i])], samples[i].labels)
            before.setdefault(i, []).append(was)
            after.setdefault(i, []).append(now)
            gained += now - was
        better += gained > 0.0
    rows = sorted(before)

    def means(of: dict[int, list[float]]) -> list[float]:
        return [sum(of[i]) / len(of[i]) for i in rows]

    change = changed("sentence F1", means(before), means(after), [samples[i].group for i in rows])
    return {
        "rows": len(samples),
        "labelled": labels,
        "held out": len(samples) - labels,
        "splits": splits,
        "signals": list(signals),
        "better in": better / splits,
        **{name: getattr(change, name).model_dump() for name in ("before", "after", "difference")},
    }


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--labels", default=30, show_default=True, help="Rows to calibrate on.")
@click.option("--splits", default=100, show_default=True, help="How often they are drawn.")
@click.option("--map", "maps", multiple=True, metavar="LABEL=KEY", help="As for `ragstone calibrate`.")
@click.option("--judge", default="local", show_default=True, help=JUDGE_HELP)
@click.option("--embedder", help=EMBEDDER_HELP)
@click.option("--journal", type=click.Path(dir_okay=False), help="Keeps the judge's replies.")
def main(
    file: Path, labels: int, splits: int, maps: tuple[str, ...], judge: str, embedder: str | None, journal: str | None
) -> None:
    """Print, as JSON, sentence F1 of ContextRelevancy on held-out rows before and after calibration."""
    llm = make_llm(judge, max_concurrency=1)
    metric = ContextRelevancy(llm=llm)
    try:
        with file.open("rb") as lines:
            given = read_labels(lines, metric, {}, parse_keys("--map", "LABEL", maps, (*LABELS, "sentences")))
    except CalibrationError as error:
        raise click.ClickException(str(error)) from None
    if given.item != "sentence":
        raise click.UsageError(f"{file}: its labels are of {given.item}, not of sentences")
    beside = make_embedder(embedder, judge, llm, max_concurrency=1) if embedder else None
    gathered = gather(prepared(metric, given), given, beside, max_concurrency=1, journal=journal)
    if not 0 < labels < len(gathered.samples):
        raise click.UsageError(f"--labels {labels}: there are {len(gathered.samples)} rows, and some must be held out")
    signals = WITH_EMBEDDER if beside is not None else WITHOUT_EMBEDDER["sentence"]
    click.echo(json.dumps(held_out(gathered.samples, signals, labels, splits), indent=2))


if __name__ == "__main__":
    main()
