"""For the site: what the tool that reads docstrings cannot know of ours."""

import re

import griffe


class Examples(griffe.Extension):
    """Renames the section "Example:" in each docstring; shows the options of what takes those of another function."""

    def on_object(self, *, obj: griffe.Object, **_others: object) -> None:
        """Rename it in the docstring of an object, which has been loaded."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)

    def on_package(self, *, pkg: griffe.Module, **_others: object) -> None:
        """Show the options of `evaluate`, which those of a run are given to by a decorator."""
        if pkg.name == "ragstone":
            options = list(pkg["batch.run.BatchRun.__init__"].parameters)[1:]
            for name in ("evaluate", "aevaluate"):
                pkg[f"batch.evaluate.{name}"].parameters = griffe.Parameters(*options)
