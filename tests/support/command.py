"""ragstone's own command, in this process."""

import re
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


def without_fields(errors: str) -> str:
    """What `ragstone score` printed on standard error, without the table of the first row's fields."""
    return re.sub(r"\A.*: the fields by row \d+\n(  .*\n)+(If .*\n)*", "", errors)
