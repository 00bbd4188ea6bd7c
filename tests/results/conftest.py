"""A PostgreSQL server, started by the sinks' tests' own means."""

from ..live.conftest import postgres  # noqa: F401, TID252
