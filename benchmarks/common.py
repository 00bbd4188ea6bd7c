"""Texts and paces that the benchmarks share. Standard library only: the peers' environments have no ragstone."""

import asyncio

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
