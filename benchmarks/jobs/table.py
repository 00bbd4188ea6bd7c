"""Ten common jobs in ragstone and in its peers: the lines of each snippet, without blank ones and comments.

    python benchmarks/jobs/table.py

It writes the table into docs/ten-jobs.md. A snippet is a whole script: imports and set-up count, the app that it scores
(`data.py`, `chain_app.py`, `engine_app.py`) does not. All are formatted by this project's settings.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "ten-jobs.md"
LIBRARIES = ("ragstone", "ragas", "deepeval", "openevals")
JOBS = {
    "one_answer": "score one answer",
    "file": "score a file",
    "data_frame": "score a DataFrame",
    "langchain_chain": "score a LangChain chain",
    "llama_index_engine": "score a LlamaIndex query engine",
    "yes_no_criterion": "a yes/no criterion of your own",
    "pytest_assertion": "an assertion in pytest",
    "compare_two_systems": "compare two systems",
    "local_judge": "a local model as the judge",
    "live_monitoring": "score live traffic",
}


def lines(library: str, job: str) -> int | None:
    """Return the lines of a snippet; None where the library has no way to do the job."""
    path = FOLDER / library / f"{job}.py"
    if not path.exists():
        return None
    bare = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return sum(bool(line) and not line.startswith("#") for line in bare)


def table() -> str:
    """Return the table."""
    rows = ["| job | ragstone | ragas | DeepEval | openevals |", "|---|--:|--:|--:|--:|"]
    for job, words in JOBS.items():
        cells = [lines(library, job) for library in LIBRARIES]
        rows.append(f"| {words} | {' | '.join('none' if cell is None else str(cell) for cell in cells)} |")
    return "\n".join(rows)


def written(page: str, made: str) -> str:
    """Return a page with the table between its two marks."""
    start, end = "<!-- table -->\n", "\n<!-- end -->"
    before, rest = page.split(start)
    return f"{before}{start}{made}{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), table()), encoding="utf-8")
