"""Import every module of ragstone; print, one a line, what core may not import and yet imported or tried to.

Run as a script, in a process of its own. It sees what the other two gates miss: an import by a name made at run
time, and one that comes by way of some other package. It does not see imports inside functions that are not called.
"""

import importlib
import importlib.abc
import pkgutil
import sys

FORBIDDEN = frozenset(
    {
        "langchain",
        "langchain_classic",
        "langchain_community",
        "langchain_core",
        "langgraph",
        "langsmith",
        "llama_index",
        "ragstone_compat",
        "ragstone_langchain",
        "ragstone_llama_index",
    }
)


class Watch(importlib.abc.MetaPathFinder):
    """Finds nothing, and notes what was looked for: also a framework that is not installed is seen."""

    def __init__(self):
        self.seen = set()

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in FORBIDDEN:
            self.seen.add(fullname)


if __name__ == "__main__":
    watch = Watch()
    sys.meta_path.insert(0, watch)
    import ragstone

    for module in pkgutil.walk_packages(ragstone.__path__, "ragstone."):
        importlib.import_module(module.name)
    print("\n".join(sorted(watch.seen)))
