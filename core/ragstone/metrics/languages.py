"""In which language the judge is to write what it makes of a text."""

from ragstone.text.naming import language_name


def write_in(*texts: str) -> str:
    """Return the sentence that names the language of the first text that is plainly in one, behind a space.

    A small judge that is told "in its language" writes English all the same; one that is told "in German" does not.
    Nothing for English, which needs no saying, and where no text says what it is in.

    Example:
        >>> write_in("Das Museum ist am Sonntag auf."), write_in("The museum is open."), write_in("1962")
        (' Write in German.', '', '')
    """
    name = next((name for text in texts if (name := language_name(text))), "English")
    return "" if name == "English" else f" Write in {name}."
