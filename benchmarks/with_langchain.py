"""What importing ragstone_langchain costs, beside langchain-core: CPU seconds of whole processes, median of 7 in turn.

    python benchmarks/with_langchain.py        # needs ragstone[langchain]

"adds" is what a package costs a process that has imported what stands before the sign.
"""

import importlib.util
import statistics
import subprocess
import sys

from imports import ROUNDS, cpu_seconds_of_children

PROGRAMS = {
    "nothing": "pass",
    "ragstone": "import ragstone",
    "langchain_core": "import langchain_core",
    "langchain_core's chat models": "from langchain_core.language_models import BaseChatModel",
    "ragstone_langchain": "import ragstone_langchain",
    "ragstone_langchain, first judge made": (
        "from langchain_core.language_models import FakeListChatModel as F;"
        "from ragstone_langchain import LangChainLLM;"
        "LangChainLLM(F(responses=[]))"
    ),
}


def main() -> None:
    """Measure and print."""
    if importlib.util.find_spec("langchain_core") is None:
        sys.exit('langchain-core is not installed: pip install "ragstone[langchain]"')
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):
        for name, program in PROGRAMS.items():
            start = cpu_seconds_of_children()
            subprocess.run([sys.executable, "-c", program], check=True)
            seconds[name].append(cpu_seconds_of_children() - start)
    taken = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in taken.items():
        print(f"{name:40} {value:6.3f}")
    print(f"{'ragstone + ragstone_langchain adds':40} {taken['ragstone_langchain'] - taken['ragstone']:6.3f}")
    print(f"{'nothing + langchain_core adds':40} {taken['langchain_core'] - taken['nothing']:6.3f}")


if __name__ == "__main__":
    main()
