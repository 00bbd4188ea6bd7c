"""Loads what the extra `ragstone[local]` brings, at first use, so that importing ragstone stays cheap."""

import importlib
from types import ModuleType


def load_extra(name: str) -> ModuleType:
    """Import the module `name` of the extra `ragstone[local]`.

    Raises:
        ImportError: It is not installed; the message says what to install.

    Example:
        >>> load_extra("platformdirs").__name__
        'platformdirs'
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = f'the embedded models need {name}: pip install "ragstone[local]" ({error})'
        raise ImportError(message, name=name) from error
