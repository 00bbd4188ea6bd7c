"""Making test cases: not there; a name is an ImportError that says what to use instead."""

from ragstone_compat.deepeval.missing import missing

__getattr__ = missing(__name__)
