"""Test sets, which are not there; an import says what to do."""

from ragstone_compat.ragas.missing import refuse as __getattr__  # noqa: F401 - for what is not there
