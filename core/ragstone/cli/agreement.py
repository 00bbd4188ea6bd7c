"""`ragstone agreement`: two people's labels in, how far they agree out."""

import click

from ragstone.plain import printable
from ragstone.report.statistics import Estimate
from ragstone.report.tables import DASH, INTERVAL, interval, number
from ragstone.text.plain import text_table

_FILE = click.Path(exists=True, dir_okay=False)


@click.command(short_help="Say how far two people's labels agree.")
@click.argument("a", type=_FILE)
@click.argument("b", type=_FILE)
def agreement(a: str, b: str) -> None:
    """Say how far two people agree, from the labels that both gave to the same samples.

    A and B are downloads of the page of `ragstone label`, of the same file. Prints, for each kind of item that both
    labelled, the share of equal answers, Cohen's kappa and Krippendorff's alpha, with their 95 % intervals. A judge
    cannot be expected to agree with people more than people do.

    \b
    Exit status:
      0    done, however far they agree
      2    a label cannot be used, the files are of other scores or
           texts, or no item has a label in both
    """  # noqa: D301 - click's mark for lines that stay as they are
    from ragstone.labels.agreement import of_files

    kinds, notes = of_files(a, b)
    rows = [
        (f"{metric}: {kind}", f"{each.items:,}", *_cells(each.share), *_cells(each.kappa), *_cells(each.alpha))
        for (metric, kind), each in kinds.items()
    ]
    head = ("labels", "in both", "the same", INTERVAL, "Cohen's kappa", INTERVAL, "Krippendorff's alpha", INTERVAL)
    click.echo("\n".join(text_table(head, [[printable(cell, 80) for cell in row] for row in rows])))
    for note in notes:
        click.echo(note)


def _cells(each: Estimate | None) -> tuple[str, str]:
    return ("undefined", DASH) if each is None else (number(each.mean), interval(each.low, each.high))
