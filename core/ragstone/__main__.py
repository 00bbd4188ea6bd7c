"""`python -m ragstone` is the `ragstone` command."""

from ragstone.cli import main

if __name__ == "__main__":
    main()
