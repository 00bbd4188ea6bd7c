"""Score two versions of an app, compare them, and make a page of the new one: `python -m batch.compare`."""

from batch.systems import samples
from words import judge

from ragstone import ContextRelevancy, ResponseRelevancy, evaluate
from ragstone.batch import compare, estimate


def main() -> None:
    """Print an estimate, both reports and the comparison; write new.html."""
    llm, embedder = judge()
    metrics = [ContextRelevancy(llm=llm), ResponseRelevancy(llm=llm, embedder=embedder)]
    print(estimate(samples(0), metrics), "\n")

    # The journal keeps every outcome: kill this at any moment, run it again, and nothing is judged twice.
    old = evaluate(samples(0), metrics, journal="compare.journal", name="old")
    new = evaluate(samples(1), metrics, journal="compare.journal", name="new")
    print(old, "\n")
    print(new, "\n")
    found = compare(old, new)
    print(found)
    new.save("new.html")


if __name__ == "__main__":
    main()
