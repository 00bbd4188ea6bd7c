"""`ragstone doctor`: what is installed, and which judge answers."""

import platform
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version

import click

from ragstone._version import __version__
from ragstone.cli.options import (
    check_model_name,
    connected_embedder,
    connected_llm,
    embedder_option,
    json_option,
    llm_option,
)
from ragstone.cli.output import as_called
from ragstone.errors import describe, without_keys
from ragstone.judge import DecisionModel, DecisionRequest, Judge, LLMRequest, Question
from ragstone.plain import printable, to_json

_EXTRA = re.compile(r"""extra == ['"](.+)['"]""")


@click.command(short_help="Say what is installed and whether the judge answers.")
@llm_option
@embedder_option
@json_option
@click.pass_context
def doctor(ctx: click.Context, llm: str, embedder: str | None, as_json: bool) -> None:
    """List the installed extras, and ask judge and embedder one small question each.

    Exit status: 0 when both answer, 1 when one does not, 2 when a name is none.
    """
    check_model_name("--llm", llm)
    check_model_name("--embedder", embedder or llm)
    python, system = platform.python_version(), platform.platform()
    packages = {what: {name: _version(name) for name in names} for what, names in _wanted_packages().items()}
    facts = {"ragstone": __version__, "python": python, "system": system, "packages": packages}
    if not as_json:
        click.echo(f"ragstone {__version__}, Python {python}, {system}")
        for what, versions in packages.items():
            click.echo(f"{what}: {', '.join(f'{name} {number}' for name, number in versions.items())}")
    found = {
        "judge": _tried("judge", llm, lambda: _judge(llm), quiet=as_json),
        "embedder": _tried("embedder", embedder, lambda: _embedder(embedder, llm), quiet=as_json),
    }
    if as_json:
        click.echo(to_json({**facts, **found}))
    ctx.exit(0 if all(each["answers"] for each in found.values()) else 1)


def _wanted_packages() -> Mapping[str, list[str]]:
    """The packages that ragstone and each of its extras need, as it was installed."""
    packages: dict[str, list[str]] = {}
    # A folder on the path is no distribution.
    with suppress(PackageNotFoundError):
        for wanted in requires("ragstone") or ():
            extra = _EXTRA.search(wanted)
            name = re.split(r"[^\w.-]", wanted, maxsplit=1)[0]
            packages.setdefault(f"ragstone[{extra[1]}]" if extra else "ragstone", []).append(name)
    return packages


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _tried(what: str, spec: str | None, ask: Callable[[], str], *, quiet: bool) -> Mapping[str, object]:
    """Whether a model answers, and what it or its error says."""
    name = spec or "default"
    started = time.perf_counter()
    try:
        answer = ask()
        line = f"{what} {printable(name)}: {printable(answer)} ({time.perf_counter() - started:.1f} s)"
        found = {"name": name, "answers": True, "says": answer}
    except click.ClickException as error:
        says = as_called(without_keys(error.message))
        line, found = f"{what}: {printable(says)}", {"name": name, "answers": False, "says": says}
    except Exception as error:
        says = as_called(describe(error))
        line = f"{what} {printable(name)}: does not answer: {printable(says)}"
        found = {"name": name, "answers": False, "says": says}
    if not quiet:
        click.echo(line)
    return found


def _judge(spec: str) -> str:
    llm: Judge = connected_llm(spec, max_concurrency=1)
    if isinstance(llm, DecisionModel):
        question = Question("Does the text say that water is wet?", ("yes", "no"), "Water is wet.")
        shares = llm.decide(DecisionRequest("doctor.ask", {"text": "Water is wet."}, {"1": question})).probabilities[
            "1"
        ]
        does = "checks claims" if getattr(llm, "claims_only", False) else "decides"
        return f"{llm.model} {does}, {shares and dict(shares)}, and writes no texts: name a --writer, too"
    request = LLMRequest(
        task="doctor.ask",
        system="Answer the question.",
        user="Is water wet? Reply with one word: yes or no.",
        schema={"type": "string", "enum": ["yes", "no"]},
        choices=("yes", "no"),
    )
    reply = llm.generate(request)
    sure = "gives probabilities" if reply.probabilities else "gives no probabilities"
    return f"{llm.model} answers {reply.text.strip()[:40]!r}, {sure}, is asked {llm.asking.replace('_', ' ')}"


def _embedder(spec: str | None, llm: str) -> str:
    embedder = connected_embedder(spec, llm, max_concurrency=1)
    rows = embedder.embed(["Is water wet?", "Does water make wet?"])
    return f"{embedder.model} answers with {rows.shape[1]} dimensions"
