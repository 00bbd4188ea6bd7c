"""What ragstone's half and the peers' halves of overhead.py share. Standard library only: peers have no ragstone."""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

SOURCE = (
    "The 'coverage score' is calculated as the percentage of assessment questions for which both the summary and the "
    "original document provide a 'yes' answer. This method ensures that the summary not only includes key information "
    "from the original text but also accurately represents it. A higher coverage score indicates a more comprehensive "
    "and faithful summary, signifying that the summary effectively encapsulates the crucial points and details from "
    "the original content."
)
SUMMARY = (
    "The coverage score quantifies how well a summary captures and accurately represents key information from the "
    "original text, with a higher score indicating greater comprehensiveness."
)
QUESTION = "How is the coverage score calculated?"
FIVE = [str(i) for i in range(1, 6)]


class Pace:
    """How long a call takes, and how many may be in flight; 0 seconds: at once."""

    def __init__(self, seconds: float = 0.0, in_flight: int = 1) -> None:
        self.seconds = seconds
        self._slots = asyncio.Semaphore(in_flight)

    async def wait(self) -> None:
        async with self._slots:
            await asyncio.sleep(self.seconds)


def run_peer(
    instant: Callable[[int], Awaitable[list[dict[str, Any]]]],
    slow: Callable[[int, float, int], Awaitable[list[dict[str, Any]]]],
) -> None:
    """Run a peer's half as its command line says, and print its rows as one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("n", type=int, nargs="?", default=300)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--in-flight", type=int, default=64)
    args = parser.parse_args()

    async def rows() -> list[dict[str, Any]]:
        return await (slow(args.n, args.seconds, args.in_flight) if args.slow else instant(args.n))

    print(json.dumps(asyncio.run(rows())))
