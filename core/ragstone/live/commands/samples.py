"""`ragstone live feedback` and `ragstone live forget`: what is kept of single samples of live traffic."""

import time
from contextlib import closing

import click

from ragstone.cli.options import json_option
from ragstone.live.commands.options import database_sink, opened_outbox
from ragstone.plain import count, printable, to_json
from ragstone.report.report import seconds_of
from ragstone.results.clean import restored_text
from ragstone.results.traffic import Feedback


@click.command(short_help="Keep a person's feedback on an answer.")
@click.argument("db", metavar="DB")
@click.argument("sample_id", metavar="ID")
@click.argument("thumb", type=click.Choice(["up", "down"]))
@click.option("--comment", metavar="TEXT", help="What the person wrote.")
@json_option
def feedback(db: str, sample_id: str, thumb: str, comment: str | None, as_json: bool) -> None:
    """Keep a person's feedback on sample ID, beside its outcomes in DB.

    DB is the file of a monitor's SQLiteSink, or the URL of its SQLSink. The latest feedback on a sample counts.
    """
    sample_id = restored_text(sample_id)
    thumbs = Feedback(sample_id=sample_id, value=f"thumbs_{thumb}", comment=comment, at=time.time())
    with closing(database_sink(db)) as sink:
        sink.feedback([thumbs])
        known = sink.has(sample_id)
        kept = {"sample_id": sample_id, "kept": thumbs.value, "has_outcome": known}
        click.echo(to_json(kept) if as_json else printable(f"{sink.name}: kept {thumbs.value}"))
        if not known:
            click.echo(f"Note: no outcome of sample {sample_id!r} is there (yet)", err=True)


@click.command(short_help="Remove outcomes, feedback and samples with their texts.")
@click.argument("db", metavar="DB")
@click.option("--outbox", metavar="PATH", help="The monitor's outbox=, where samples wait.")
@click.option("--older-than", metavar="TIME", help="Samples that are older than this: 90d, 24h or 30m.")
@click.option("--user", metavar="ID", help="All samples of a user, by the metadata's user_id.")
@click.option("--id", "sample_id", metavar="ID", help="One sample.")
@json_option
def forget(
    db: str, outbox: str | None, older_than: str | None, user: str | None, sample_id: str | None, as_json: bool
) -> None:
    """Remove outcomes and feedback from DB, and from the outbox what waits, with all their texts.

    DB is the file of a monitor's SQLiteSink, or the URL of its SQLSink. Name exactly one of --older-than, --user and
    --id. Monitors may go on: these samples are removed from their memory, too. An id is named as reports show
    it, where NUL and lone surrogates are escapes.
    """
    if sum(map(bool, (older_than, user, sample_id))) != 1:
        raise click.UsageError("name the samples to forget: exactly one of --older-than, --user and --id")
    age = seconds_of(older_than) if older_than else None
    if older_than and age is None:
        raise click.UsageError(f"--older-than {older_than}: is no time; write 90d, 24h or 30m")
    before = None if age is None else time.time() - age
    sample_id, user = restored_text(sample_id or ""), restored_text(user or "")
    removed = {"samples": 0, "waiting": 0}
    with closing(database_sink(db)) as sink:
        ids = {sample_id} if sample_id else sink.samples_of(user) if user else set[str]()
        if outbox is not None:
            with opened_outbox(outbox) as opened:
                gone = opened.forget(before=before, ids=ids, user=user)
            ids.update(*gone.values())
            removed = {"samples": len(gone["samples"]), "waiting": len(gone["records"])}
        removed |= sink.forget(before=before, ids=ids, user=user)
    if as_json:
        click.echo(to_json(removed))
        return
    if outbox is not None:
        waited = f"{count(removed['waiting'], 'outcome')} and feedback that waited"
        click.echo(printable(f"{outbox}: removed {count(removed['samples'], 'sample')}, {waited}"))
    what = f"removed {count(removed['outcomes'], 'outcome')}, {removed['feedback']:,} feedback"
    click.echo(printable(f"{sink.name}: {what}"))
