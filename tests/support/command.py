"""ragstone's own command, in this process."""

from typing import Any

from click.testing import CliRunner, Result

from ragstone.cli.main import cli


def command(*arguments: object, **settings: Any) -> Result:
    """How the command ended: `command("score", path, ...)`."""
    return CliRunner().invoke(cli, list(map(str, arguments)), **settings)


def said(*arguments: object) -> str:
    """What a command prints that ends well."""
    done = command(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout
