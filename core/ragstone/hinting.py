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
