"""For the site: a docstring's "Example:" is code, as "Examples:" is to the tool that reads docstrings."""

import re

import griffe


class Examples(griffe.Extension):
    """Renames the section in each docstring."""

    def on_object(self, *, obj: griffe.Object, **_others: object) -> None:
        """Rename it in the docstring of an object, which has been loaded."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
