"""Outcomes as lines of JSON, for a program that reads such a file: `python -m live.json_lines`.

What a file does not promise, and a database does:

- `ragstone live forget` does not reach it. Remove a user's lines yourself.
- An outcome may come twice, as after a kill. Of lines with the same id, metric and version the last one counts.
- A kill or a full disk may cut a line off.
- Processes that append at the same time may mix their lines. Give each a file of its own.
- It is not private: a new file has the mode that your process gives files.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from words import judge

from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.live import CallableSink, Record

FILE = Path("outcomes.jsonl")


def append(records: Sequence[Record]) -> None:
    """Append a line for each record. Where it raises, the monitor tries again."""
    lines: list[str] = []
    for record in records:
        about = {"id": record.sample_id, "judge": record.judge, "submitted_at": record.submitted_at}
        lines.append(json.dumps(about | record.outcome.model_dump()) + "\n")
    with FILE.open("a", encoding="ascii") as file:
        file.writelines(lines)


def main() -> None:
    """Score a sample, and print the file."""
    llm, _ = judge()
    sample = Sample(id="q1", user_input="When does it open?", retrieved_contexts=["It opens at ten. Dogs may enter."])
    with Monitor(ContextRelevancy(llm=llm), sinks=CallableSink(append)) as monitor:
        monitor.submit(sample)
    print(FILE.read_text())


if __name__ == "__main__":
    main()
