"""`ragstone doctor`: what is installed, and which judge answers."""

import platform
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version

import click

from ragstone._version import __version__
from ragstone.cli.options import check_model_name, connected_embedder, connected_llm, embedder_option, llm_option
from ragstone.cli.output import as_called
from ragstone.errors import describe, without_keys
from ragstone.judge import DecisionModel, DecisionRequest, Judge, LLMRequest, Question
from ragstone.plain import printable

_EXTRA = re.compile(r"""extra == ['"](.+)['"]""")


@click.command(short_help="Say what is installed and whether the judge answers.")
@llm_option
@embedder_option
@click.pass_context
def doctor(ctx: click.Context, llm: str, embedder: str | None) -> None:
    """List the installed extras, and ask judge and embedder one small question each.

    Exit status: 0 when both answer, 1 when one does not, 2 when a name is none.
    """
    check_model_name("--llm", llm)
    check_model_name("--embedder", embedder or llm)
    click.echo(f"ragstone {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for what, packages in _wanted_packages().items():
        click.echo(f"{what}: {', '.join(map(_version, packages))}")
    answered = [_try("judge", llm, lambda: _judge(llm)), _try("embedder", embedder, lambda: _embedder(embedder, llm))]
    ctx.exit(0 if all(answered) else 1)


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
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} missing"


def _try(what: str, spec: str | None, ask: Callable[[], str]) -> bool:
    name = spec or "default"
    started = time.perf_counter()
    try:
        answer = ask()
    except click.ClickException as error:
        click.echo(f"{what}: {printable(as_called(without_keys(error.message)))}")
        return False
    except Exception as error:
        click.echo(f"{what} {printable(name)}: does not answer: {printable(as_called(describe(error)))}")
        return False
    click.echo(f"{what} {printable(name)}: {printable(answer)} ({time.perf_counter() - started:.1f} s)")
    return True


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
