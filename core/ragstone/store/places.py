"""What is wrong with the place of a file."""

from pathlib import Path


def wrong_place(path: Path, example: str) -> str | None:
    """Return what is wrong with where the file is, and what to do; None where it is not the place.

    Args:
        path: The file.
        example: A usual name for such a file.

    Example:
        >>> print(wrong_place(Path("/no/such/folder/ragstone.db"), "ragstone.db"))
        there is no folder /no/such/folder; make it, or name another file
    """
    try:
        if path.is_dir():
            return f"is a folder; name a file in it, such as {path / example}"
        if not path.parent.is_dir():
            return f"there is no folder {path.parent}; make it, or name another file"
    except OSError as error:  # a folder above it may not be entered
        return f"cannot be reached ({error.strerror}); its folders must be open to this process"
    return None
