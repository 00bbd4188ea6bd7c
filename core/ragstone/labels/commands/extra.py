"""What the commands that read labels need beside ragstone."""

from importlib.util import find_spec

import click


def say_extra() -> None:
    """Say, before anybody labels, what is not installed that the commands which read labels need."""
    if any(find_spec(package) is None for package in ("scipy", "sklearn")):
        commands = "`ragstone correct` and `ragstone calibrate`"
        click.echo(f'Note: {commands} will need: pip install "ragstone[calibrate]"', err=True)
