"""`ragstone feedback`: what a person said of an answer, kept beside its outcomes."""

import time
from contextlib import closing

import click

from ragstone.cli.options import database_sink, opened_outbox
from ragstone.store.base import Feedback


@click.command(short_help="Keep what a person said of an answer.")
@click.argument("db", metavar="DB")
@click.argument("sample_id", metavar="ID")
@click.argument("thumb", type=click.Choice(["up", "down"]))
@click.option("--comment", metavar="TEXT", help="What the person wrote.")
@click.option("--outbox", metavar="PATH", help="The monitor's outbox=: a sample that it keeps for feedback is scored.")
def feedback(db: str, sample_id: str, thumb: str, comment: str | None, outbox: str | None) -> None:
    """Keep what a person said of the answer of sample ID, beside its outcomes in DB.

    DB is the file of a monitor's SQLiteSink, or the URL of its SQLSink. The latest feedback on a sample counts.
    """
    thumbs = Feedback(sample_id=sample_id, value=f"thumbs_{thumb}", comment=comment, at=time.time())
    with closing(database_sink(db)) as sink:
        sink.feedback([thumbs])
        click.echo(f"{sink.name}: kept {thumbs.value}")
        if not sink.has(sample_id):
            click.echo(f"Note: no outcome of sample {sample_id!r} is there (yet)", err=True)
    if outbox is not None:
        with opened_outbox(outbox) as opened, opened.transaction():
            chosen = opened.choose_kept(sample_id)
        click.echo(f"{outbox}: {'the sample will be scored' if chosen else 'no sample of that id is kept'}")
