"""A metric as users write them, which asks in rounds."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ragstone import Metric, Sample
from ragstone.judging import each


@dataclass(frozen=True, kw_only=True)
class Rounds(Metric):
    """Asks as many times in each of its rounds as it is told."""

    name = "rounds"
    version = "1"
    required_fields = ("response",)
    prompts: ClassVar = {"say": "Say yes."}
    sizes: tuple[int, ...] = (2, 1)
    option: object = None

    def _flow(self, sample: Sample) -> Any:
        for number, size in enumerate(self.sizes):
            data = {"response": sample.response or ""}
            asked = [self.choice("say", data, f"{number}.{i}: yes or no?", ("yes", "no")) for i in range(size)]
            yield from each([self.ask_choice(request) for request in asked])
        return self._score(1.0, "Done.")
