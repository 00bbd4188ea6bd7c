"""What a first use costs beside `import numpy`, and how many of ragstone's modules it loads.

    python benchmarks/imports.py

CPU time is user + system of a whole process that does nothing else, with all modules compiled. Each round
runs all programs in turn; a ratio is the median over the rounds of a program's time to that round's `import numpy`.
"""

import os
import resource
import statistics
import subprocess
import sys

ROUNDS = 11
NUMPY = "import numpy"
FIRST_USE = "from ragstone import Faithfulness, Sample, evaluate"
ONE_ROW = f"""{FIRST_USE}
from ragstone.testing import FakeLLM
verdicts = {{"1": {{"evidence": [1], "verdict": "supported"}}}}
replies = {{"faithfulness.claims": {{"claims": ["It rained."]}}, "faithfulness.verdicts": {{"verdicts": verdicts}}}}
metric = Faithfulness(llm=FakeLLM(lambda request: replies[request.task]))
sample = Sample(user_input="Rain?", retrieved_contexts=["It rained."], response="Yes.")
print(evaluate([sample], metric, progress=False))
"""
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
COUNT = """
import sys
print(sum(name.partition(".")[0] == "ragstone" for name in sys.modules))
"""


def main() -> None:
    """Measure and print."""
    programs = {"import numpy": NUMPY, "first use": FIRST_USE, "one row scored and printed": ONE_ROW}
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for program in programs.values():
        cpu_seconds(program)  # which compiles what it loads
    for _ in range(ROUNDS):
        for name, program in programs.items():
            seconds[name].append(cpu_seconds(program))
    for name, program in programs.items():
        pairs = zip(seconds[name], seconds["import numpy"], strict=True)
        ratio = statistics.median(own / numpy for own, numpy in pairs)
        median = statistics.median(seconds[name])
        print(
            f"{name:28} {median:.3f} s of CPU, {ratio:.2f} times import numpy, {modules(program)} modules of ragstone"
        )


def cpu_seconds(program: str) -> float:
    """Return the CPU time of a process that runs a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, env=ENVIRON, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def modules(program: str) -> int:
    """Return how many modules of ragstone's a program has loaded."""
    done = subprocess.run([sys.executable, "-c", program + COUNT], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
