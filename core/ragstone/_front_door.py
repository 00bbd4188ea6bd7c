"""Packages whose public names are loaded when first used (PEP 562)."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module


def front_door(
    package: str, modules: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return a package's `__all__`, `__getattr__` and `__dir__`.

    Args:
        package: Its name.
        modules: The public names that each module defines, with a space between them.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return sorted(homes), load, partial(sorted, homes)
