"""ragas' chain, which is not there; an import says what to use."""

from ragstone_compat.ragas.missing import refuse as __getattr__  # noqa: F401 - for what is not there
