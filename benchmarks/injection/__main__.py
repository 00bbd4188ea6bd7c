"""What attacks inside the data do to scores, with a judge and with the parser alone.

python benchmarks/injection --judge local --out DIR
"""

import sys
from datetime import datetime, timezone
from pathlib import Path

import click

from ragstone import LLM, __version__
from ragstone.cli.options import EMBEDDER_HELP, JUDGE_HELP, make_embedder, make_llm
from ragstone.registry import is_local

if not __package__:  # run as a folder: its modules are a package all the same, so that none shadows another's
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    __package__ = "injection"

from .attacks import ATTACKS
from .cases import cases
from .figures import Outcomes, changes, score, write


@click.command()
@click.option("--judge", required=True, help=JUDGE_HELP)
@click.option("--embedder", help=EMBEDDER_HELP)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the results.")
@click.option("--rounds", type=click.IntRange(1, 4), default=1, show_default=True,
              help="Samples that each attack meets in a field; 1: about 300 calls.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), help="Only so many attacks.")
@click.option("--max-concurrency", "calls", type=click.IntRange(1), default=8, show_default=True,
              help="Calls in flight to a judge that is not in this process.")  # fmt: skip
def main(judge: str, embedder: str | None, out: Path, rounds: int, limit: int | None, calls: int) -> None:
    """Put attacks into samples with known verdicts, and write what they change.

    Run the same command again after it was stopped: what was judged is not judged again.
    """
    calls = 1 if is_local(judge) else calls
    llm = make_llm(judge, max_concurrency=calls)
    vectors = make_embedder(embedder, judge, llm, max_concurrency=calls)
    out.mkdir(parents=True, exist_ok=True)
    attacked = cases(ATTACKS[:limit], rounds)
    outcomes = score(attacked, llm, vectors, out / "journal.db", calls=calls)
    facts = _facts(llm, vectors.model, rounds, len(attacked), outcomes)
    for path in write(out, facts, changes(attacked, outcomes)):
        click.echo(f"wrote {path}", err=True)


def _facts(llm: LLM, embedder: str, rounds: int, n: int, outcomes: Outcomes) -> dict[str, object]:
    counted = [outcome.usage for outcome in outcomes.values()]
    tokens = [(usage.input_tokens, usage.output_tokens) for usage in counted]
    versions = sorted({f"{outcome.metric} {outcome.version}" for outcome in outcomes.values()})
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "judge": f"{llm.model}, asked {llm.asking.replace('_', ' ')}",
        "embedder": embedder,
        "ragstone": f"{__version__} ({', '.join(versions)})",
        "runs": f"{n} with an attack, rounds {rounds}; {len(outcomes)} outcomes in all",
        "calls": sum(usage.llm_calls for usage in counted),
        "tokens in": None if any(a is None for a, _ in tokens) else sum(a or 0 for a, _ in tokens),
        "tokens out": None if any(b is None for _, b in tokens) else sum(b or 0 for _, b in tokens),
        "seconds of samples": round(sum(usage.seconds for usage in counted)),
    }


if __name__ == "__main__":
    main()
