"""Objects that say what to write in place of an attribute that they do not have."""

from typing import TYPE_CHECKING


class Hinting:
    """What reports, outcomes and metrics have in common: an unknown attribute's error names the one that is meant."""

    if not TYPE_CHECKING:
        # Type checkers know which attributes there are.
        def __getattr__(self, name: str) -> object:
            # Loaded where one is not there.
            from ragstone.renamed import no_attribute

            raise no_attribute(self, name)


class NoNumber(Hinting):
    """What outcomes and means have in common: who takes one for a number reads where the number is."""

    if not TYPE_CHECKING:

        def _refuse(self, *_: object) -> None:
            kind = type(self).__name__
            where = "mean" if kind == "MetricSummary" else "value"
            raise TypeError(
                f"{kind} is no number and no mapping; write .{where}, which is None where there is no score"
            )

        def __format__(self, form: str) -> str:
            return self._refuse() if form else str(self)

        __float__ = __getitem__ = __ge__ = __gt__ = __le__ = __lt__ = _refuse
