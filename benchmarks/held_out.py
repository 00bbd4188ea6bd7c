"""What a calibration from a few labels is worth on rows that it has not seen.

python benchmarks/held_out.py LABELLED.jsonl --map relevant=use.target.relevant --embedder local --labels 30 \
    --journal DIR/journal.db

Draws so many rows many times, makes a calibration of them as `ragstone calibrate` does, and scores the other rows with
and without it. Rows of one question are drawn together. A draw that cannot be fitted is left out, and told with its
reason, as are rows that could not be scored. The journal may be the one of `benchmarks/agreement`: the judge is not
asked again then.
"""

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import click

from ragstone import ContextRelevancy
from ragstone.cli.options import EMBEDDER_HELP, JUDGE_HELP, make_embedder, make_llm, parse_keys
from ragstone.labels import CalibrationError
from ragstone.labels.fit import Labelled, changed, cross_fit, f1
from ragstone.labels.label_rows import LABELS, read_labels
from ragstone.labels.make import gather, prepared


def held_out(samples: Sequence[Labelled], labels: int, splits: int) -> dict[str, object]:
    """Return sentence F1 on held-out rows: a row's figure is its mean over the splits that held it out.

    Raises:
        CalibrationError: None of the splits can be fitted.
    """
    before: dict[int, list[float]] = {}
    after: dict[int, list[float]] = {}
    better = 0
    fitted_on: list[int] = []
    refused: Counter[str] = Counter()
    for seed in range(splits):
        kept, rest = drawn([sample.group for sample in samples], labels, seed)
        try:
            result = cross_fit([samples[i] for i in kept], "sentence", seed=seed)
        except CalibrationError as error:
            refused[str(error)] += 1
            continue
        fitted_on.append(len(kept))
        limit = 0.5 if result.threshold is None else result.threshold
        gained = 0.0
        for i in rest:
            was = float(f1(samples[i].before, samples[i].labels))
            now = float(f1(samples[i].mapped(result.fitted) >= limit, samples[i].labels))
            before.setdefault(i, []).append(was)
            after.setdefault(i, []).append(now)
            gained += now - was
        better += gained > 0.0
    if not fitted_on:
        raise CalibrationError(f"none of {splits} draws could be fitted: {next(iter(refused), 'there is none')}")
    rows = sorted(before)

    def means(of: dict[int, list[float]]) -> list[float]:
        return [sum(of[i]) / len(of[i]) for i in rows]

    change = changed("sentence F1", means(before), means(after), [samples[i].group for i in rows])
    return {
        "rows": len(samples),
        "labelled": mean(fitted_on),
        "held out": len(samples) - mean(fitted_on),
        "splits": splits,
        "not fitted": dict(refused),
        "better in": better / len(fitted_on),
        **{name: getattr(change, name).model_dump() for name in ("before", "after", "difference")},
    }


def drawn(groups: Sequence[str], labels: int, seed: int) -> tuple[list[int], list[int]]:
    """Return which rows to label, at most so many, and which to hold out; no group is on both sides."""
    names = list(dict.fromkeys(groups))
    rows = {name: [i for i, group in enumerate(groups) if group == name] for name in names}
    order = [i for name in random.Random(seed).sample(names, len(names)) for i in rows[name]]
    cut = labels
    while 0 < cut < len(order) and groups[order[cut - 1]] == groups[order[cut]]:
        cut -= 1
    return order[:cut], order[cut:]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--labels", default=30, show_default=True, help="Rows to calibrate on, at most: whole questions.")
@click.option("--splits", type=click.IntRange(1), default=100, show_default=True, help="How often they are drawn.")
@click.option("--map", "maps", multiple=True, metavar="LABEL=KEY", help="As for `ragstone calibrate`.")
@click.option("--judge", default="local", show_default=True, help=JUDGE_HELP)
@click.option("--embedder", help=EMBEDDER_HELP)
@click.option("--journal", type=click.Path(dir_okay=False), help="Keeps the judge's replies.")
def main(
    file: Path, labels: int, splits: int, maps: tuple[str, ...], judge: str, embedder: str | None, journal: str | None
) -> None:
    """Print, as JSON, sentence F1 of ContextRelevancy on held-out rows before and after calibration."""
    llm = make_llm(judge, max_concurrency=1)
    beside = make_embedder(embedder, judge, llm, max_concurrency=1) if embedder else None
    metric = ContextRelevancy(llm=llm, embedder=beside)
    try:
        labelled = read_labels(file, metric, {}, parse_keys("--map", "LABEL", maps, (*LABELS, "sentences")))
        if labelled.item != "sentence":
            raise click.UsageError(f"{file}: its labels are of {labelled.item}, not of sentences")
        samples, unscored = gather(prepared(metric, labelled), labelled, max_concurrency=1, journal=journal)
        for reason, count in unscored.items():
            click.echo(f"unscored, left out: {count} {reason}", err=True)
        if not 0 < labels < len(samples):
            rows = len(samples)
            raise click.UsageError(f"--labels {labels}: there are {rows} scored rows, and some must be held out")
        figures = held_out(samples, labels, splits)
    except CalibrationError as error:
        raise click.ClickException(str(error)) from None
    click.echo(json.dumps({**figures, "unscored": unscored}, indent=2))


if __name__ == "__main__":
    main()
