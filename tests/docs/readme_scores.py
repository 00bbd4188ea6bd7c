"""Compare the table of scores that README shows with the one that its first command printed."""

import re
import sys
from pathlib import Path


def scores(text: str) -> dict[str, tuple[float, str]]:
    """Return the rows of the first table of scores in a text: (mean, scored/total) by metric."""
    table = re.search(r"^metric +mean +.*\n((?:\w+ +-?\d.*\n?)+)", text, re.MULTILINE)
    rows = (re.match(r"(\w+) +(-?[\d.]+) .*?(\d+/\d+)", line) for line in (table[1].splitlines() if table else ()))
    return {row[1]: (float(row[2]), row[3]) for row in rows if row}


def differences(promised: str, printed: str) -> list[str]:
    """Return how the printed scores differ from the promised ones: in a count, or by more than 0.1 in a mean."""
    actual = scores(printed)
    if not actual:
        return ["the command printed no table of scores"]
    return [
        f"README.md shows {name} {mean} {scored}, the command printed {actual.get(name)}"
        for name, (mean, scored) in scores(promised).items()
        if name not in actual or actual[name][1] != scored or abs(actual[name][0] - mean) > 0.1
    ]


if __name__ == "__main__":
    readme, printed = (Path(name).read_text(encoding="utf-8") for name in sys.argv[1:])
    sys.exit("\n".join(differences(readme, printed)) or print(printed))
