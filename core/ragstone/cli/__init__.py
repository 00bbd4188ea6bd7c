"""The `ragstone` command."""

from ragstone.cli.main import main

__all__ = ["main"]
