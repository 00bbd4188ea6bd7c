"""What a preview shows: each field, where it came from, what else could be meant, and the line to paste."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ragstone.adapters.field_table import FieldLine, beginning, field_lines, field_table
from ragstone.adapters.guesses import Candidate, guess
from ragstone.plain import printable
from ragstone.sample import Sample, SampleField

WANTED: Sequence[SampleField] = ("user_input", "retrieved_contexts", "response")
"""The fields that the sample of an app has."""
_WIDEST = 160
UNREAD = ("no_answer", "no_contexts", "no_question", "nothing_found")
"""Reasons of runs in which a field was not read."""
_NOUNS = {"user_input": "the question", "retrieved_contexts": "the contexts", "response": "the answer"}


@dataclass(frozen=True, slots=True)
class Wording:
    """How users of a framework write what a preview prints.

    Attributes:
        handler: The call that takes fields=, with FIELDS in their stead.
        nothing: What to do where no run was seen.
        several: What to do where there were several.
        tools: The call that takes names of tools that retrieve, with TOOLS in their stead.
    """

    handler: str
    nothing: str = ""
    several: str = ""
    tools: str = ""


@dataclass(frozen=True, slots=True)
class PreviewedRun:
    """What one outermost run of an app gives a monitor.

    Attributes:
        name: What ran.
        sample: Its sample; None where it is none.
        values: What was read, by field, whether or not it makes a sample.
        skipped: Why it is no sample, as `stats().skipped` has it; None where it is one.
        read_from: Where each field came from.
        candidates: By field, the entries that could be meant besides, the likeliest first.
        unread: The names of the entries that hold no field.
        returned: What it returned, such as "the dict".
        tools: The names of the tools that it called.
        failed: The error of a run that failed.
        advice: What to do about a run that is no sample.
        wants_ids: Whether the ids of its sources were asked for.
    """

    name: str
    sample: Sample | None = None
    values: Mapping[str, object] = field(default_factory=dict[str, object])
    skipped: str | None = None
    read_from: Mapping[str, str] = field(default_factory=dict[str, str])
    candidates: Mapping[str, Sequence[Candidate]] = field(default_factory=dict[str, Sequence[Candidate]])
    unread: Sequence[str] = ()
    returned: str = "what it returned"
    tools: Sequence[str] = ()
    failed: str = ""
    advice: str = ""
    wants_ids: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """The fields that were not read."""
        return tuple([name for name in WANTED if name not in self.read_from])

    @property
    def guesses(self) -> Mapping[str, Candidate]:
        """The entry that is likely meant, by field, of fields that were not read."""
        found = {name: guess(self.candidates.get(name, ())) for name in self.missing}
        return {name: each for name, each in found.items() if each is not None}


@dataclass(frozen=True, repr=False)
class Preview:
    """One run of an app, as a monitor would read it. `print` shows it as a table.

    Of several outermost runs, the attributes are those of the last that is a sample; `runs` has all.

    Attributes:
        runs: The outermost runs, by their end.
        given: The names that fields= gave.
        problems: The faults of reading, with the reason.

    Example:
        >>> run = PreviewedRun("chain", skipped="no_answer", read_from={"user_input": "question"}, unread=["told"])
        >>> preview = Preview([run], Wording("MonitorHandler(monitor, fields=FIELDS)"))
        >>> preview
        <Preview of chain: no sample (no_answer)>
        >>> preview.missing, preview.skipped
        (('retrieved_contexts', 'response'), 'no_answer')
    """

    runs: Sequence[PreviewedRun]
    wording: Wording
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: Sequence[str] = ()

    @property
    def _run(self) -> PreviewedRun:
        samples = [run for run in self.runs if run.sample is not None]
        return [PreviewedRun("", skipped="no_run"), *self.runs, *samples][-1]

    @property
    def sample(self) -> Sample | None:
        """The sample; None where the run is none."""
        return self._run.sample

    @property
    def skipped(self) -> str | None:
        """Why it is no sample, as `stats().skipped` has it, or "no_run"; None where it is one."""
        return self._run.skipped

    @property
    def read_from(self) -> Mapping[str, str]:
        """Where each field came from."""
        return self._run.read_from

    @property
    def missing(self) -> tuple[str, ...]:
        """The fields that were not read, of `user_input`, `retrieved_contexts` and `response`."""
        return self._run.missing

    @property
    def fields(self) -> dict[str, str]:
        """The value for fields=: the given names, and the likely entry of each missing field.

        Empty where all was read without it.
        """
        return {**self.given, **{name: each.name for name, each in self._run.guesses.items() if not each.within}}

    def __repr__(self) -> str:
        runs = "; ".join([printable(f"{run.name}: {_outcome(run)}") for run in self.runs])
        return f"<Preview of {runs or 'no run'}>"

    def __str__(self) -> str:
        width = min(_WIDEST, shutil.get_terminal_size((100, 24)).columns)
        lines: list[str] = []
        for number, run in enumerate(self.runs, 1):
            which = f"Run {number} of {len(self.runs)}, " if len(self.runs) > 1 else ""
            lines += [printable(f"{which}{run.name}: {_outcome(run)}"), *_table_of_run(run, width)]
            lines += self._advice(run)
        lines += [printable(f"Could not be read: {problem}") for problem in self.problems]
        if len(self.runs) != 1:
            lines.append(self.wording.several if self.runs else self.wording.nothing)
        return "\n".join(lines)

    def _advice(self, run: PreviewedRun) -> Iterator[str]:
        """Yield what to do about what is missing or in doubt, with the lines to paste."""
        if run.failed or run.skipped not in (None, *UNREAD):
            return
        lines = {name: [self._paste(name, each) for each in found] for name, found in run.candidates.items()}
        if fields := {name: each.name for name, each in run.guesses.items() if not each.within}:
            yield from _block("If what stands behind ? is right, paste:", [self._handler(fields)])
        for name in WANTED:
            if name in run.missing and name in self.given:
                yield f"fields= says {printable(self.given[name], 40)}, where no such field stands."
            if name in run.read_from and lines.get(name):
                yield from _block(f"If another entry holds {_NOUNS[name]}:", lines[name])
            elif name in run.missing and name not in fields:
                yield from _block(*self._way(name, run, lines.get(name, ())))
                if name == "retrieved_contexts" and run.tools:
                    names = ", ".join(map(_quoted, run.tools))
                    tools = self.wording.tools.replace("TOOLS", f"{{{names}}}")
                    yield from _block("Or, of the tools that it called, name those whose texts they are:", [tools])

    def _way(self, wanted: str, run: PreviewedRun, lines: Sequence[str]) -> tuple[str, Sequence[str]]:
        if lines:
            asks = "Which of these holds {}?" if len(lines) > 1 else "If this holds {}:"
            return asks.format(_NOUNS[wanted]), lines
        nothing = (
            f"Nothing in {'what was asked' if wanted == 'user_input' else run.returned} looks like {_NOUNS[wanted]}."
        )
        if wanted == "retrieved_contexts":
            return f"{nothing} Where the app finds them:", ["contexts(found)"]
        function = f'lambda inputs, output: {{"{wanted}": ...}}'
        return f"{nothing} A function can give it:", [self._handler(function)]

    def _paste(self, wanted: str, meant: Candidate) -> str:
        if meant.within:
            return f"contexts([{meant.within} for each in {meant.name.rpartition('.')[2]}])"
        return self._handler({wanted: meant.name})

    def _handler(self, fields: Mapping[str, str] | str) -> str:
        if not isinstance(fields, str):
            pairs = [f"{_quoted(wanted)}: {_quoted(name)}" for wanted, name in {**self.given, **fields}.items()]
            fields = f"{{{', '.join(pairs)}}}"
        return self.wording.handler.replace("FIELDS", fields)


def _block(why: str, lines: Sequence[str]) -> Sequence[str]:
    return [why, *[f"    {line}" for line in lines]]


def _quoted(text: str) -> str:
    """A text as Python has it."""
    return f'"{text}"' if text.isprintable() and not set('"\\') & set(text) else repr(text)


def _outcome(run: PreviewedRun) -> str:
    if run.sample is None:
        return f"no sample ({run.skipped}){f': {run.advice}' if run.advice else ''}"
    if run.failed:
        return f"a sample without an answer, because it failed ({run.failed})"
    return f"a sample, without {' and '.join(map(_NOUNS.__getitem__, run.missing))}" if run.missing else "a sample"


def _table_of_run(run: PreviewedRun, width: int) -> Sequence[str]:
    """The fields, each with where it came from and how it begins, or with what could be meant."""
    if not run.read_from and run.skipped not in (None, *UNREAD):
        return ()
    return field_table([*_lines_of_run(run)], run.unread, width)


def _lines_of_run(run: PreviewedRun) -> Iterator[FieldLine]:
    for wanted in WANTED:
        source, found = run.read_from.get(wanted), run.candidates.get(wanted, ())
        yield from field_lines(wanted, source, run.values.get(wanted), found)
    if run.sample is not None and run.wants_ids:
        ids = [*run.sample.retrieved_ids]
        has = "retrieved_ids" in run.sample.model_fields_set
        yield "retrieved_ids", "<-" if has else "", "ids of its sources" if has else "missing", beginning(ids, "id")
    if run.sample is not None and run.sample.history:
        turns = [turn.content for turn in run.sample.history]
        yield "history", "<-", run.read_from.get("history", "earlier turns"), beginning(turns, "turn")
