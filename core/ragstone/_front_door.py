"""Packages whose public names are loaded when first used (PEP 562)."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module


def words_of(name: str) -> str:
    """A class's name in words, as metrics are called.

    Example:
        >>> words_of("RAGScore"), words_of("ContextRelevancy")
        ('rag_score', 'context_relevancy')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def front_door(
    package: str, modules: Mapping[str, str], *, framework: str = "", extra: str = ""
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return a package's `__all__`, `__getattr__` and `__dir__`.

    Args:
        package: Its name.
        modules: The public names that each module defines, with a space between them.
        framework: The module of a framework that all of them need; where it is missing, an ImportError says so.
        extra: The extra of ragstone that brings it.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in homes:
            # Loaded where a name is none.
            from ragstone.renamed import class_meant

            metrics = {words_of(each): each for each, module in homes.items() if module == "ragstone.metrics"}
            if metrics and (meant := class_meant(words_of(name), metrics)):
                raise ImportError(f"{package} has no {name!r}; write `from {package} import {meant}`")
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            if not error.name or not framework.startswith(error.name):
                raise
            distribution = framework.replace(".", "-").replace("_", "-")
            raise ImportError(f'{package} needs {distribution}: pip install "ragstone[{extra}]"') from error

    return sorted(homes), load, partial(sorted, homes)
