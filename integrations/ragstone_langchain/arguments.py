"""What an evaluator is called with, read as a run is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragstone.adapters.runs import Run, Unreadable
from ragstone.metrics import Metric
from ragstone.plain import printable
from ragstone.sample import Sample, SampleField
from ragstone_langchain.read import (
    FIELD_NAMES,
    Ended,
    ReadingOptions,
    attempt,
    fields_of_run,
    kind,
    named_contexts,
    sample_with,
)

_PLACES: Mapping[SampleField, tuple[str, ...]] = {
    "user_input": ("inputs", "outputs"),
    "response": ("outputs",),
    "retrieved_contexts": ("context", "inputs", "outputs"),
    "reference": ("reference_outputs",),
}
_WAYS_OUT: Mapping[SampleField, str] = {
    "user_input": "pass inputs as text, a message or a mapping with one of %s",
    "response": "pass outputs as text, an AI message with text, or a mapping with one of %s",
    "retrieved_contexts": "pass context as texts or Documents, or outputs with one of %s; an agent's tool keeps "
    "Documents in its artifact or is named in retriever_tools",
    "reference": "pass reference_outputs as text, or a mapping with one of %s or with an answer",
}
_TAKEN = "inputs, outputs, reference_outputs, context, contexts and retrieved_contexts"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What an evaluator is called with, as LangSmith names it.

    `inside` are the calls of a run that LangSmith has traced, `error` is what it raised, and `others` are keywords that
    nobody reads.
    """

    inputs: object = None
    outputs: object = None
    reference_outputs: object = None
    context: object = None
    inside: tuple[Run, ...] = ()
    error: str | None = None
    others: tuple[str, ...] = ()

    def sample(self, metric: Metric, reading: ReadingOptions) -> Sample:
        """Return the sample; raise `Unreadable` where a field that the metric needs is not there."""
        inside = [*self.inside]
        if self.context is not None:
            inside.append(Run("context", "named", output=attempt(named_contexts, self.context, "context")))
        run = Run("", "chain", inputs=self.inputs, output=self.outputs, inside=inside)
        source = metric.source_field
        ended = Ended.of(run)
        found = fields_of_run(ended, reading, self.reference_outputs, source)
        if found is None:
            raise Unreadable("fields: the function returned None; return a Sample or a mapping of its fields")
        if isinstance(found, Sample):
            return found
        problems = {field: value for field, value in found.items() if isinstance(value, Unreadable)}
        sample = sample_with({field: value for field, value in found.items() if field not in problems}, ended)
        wrong_keys: list[SampleField] = [field for field in reading.keys if field in problems]
        if source is not None and not wrong_keys and not metric.source_chosen:
            sample = _with_original(sample, source)
        for field in wrong_keys or metric.required_fields:
            if field not in sample.model_fields_set:
                raise Unreadable(self._why_not(field, problems.get(field)))
        return sample

    def _why_not(self, field: SampleField, problem: Unreadable | None) -> str:
        if self.error is not None:
            return f"the app failed: the target raised {printable(self.error.partition(chr(10))[0], 300)}"
        # LangSmith packs None so.
        if self.outputs == {"output": None}:
            return "the app returned nothing (None)"
        places = [f"{name} ({kind(getattr(self, name))})" for name in _PLACES[field]]
        why = problem or f"is not in {' or '.join(places)}"
        names = ", ".join(map(repr, FIELD_NAMES[field]))
        others = f"; not read: {', '.join(self.others)} (it takes {_TAKEN})" if self.others else ""
        way_out = f"{_WAYS_OUT[field] % names}{others}; or name its key with fields={{{field!r}: KEY}}"
        return f"{field}: {why}; {way_out}"


def _with_original(sample: Sample, source: SampleField) -> Sample:
    """Take a summary's original from where the user has it, if not in the field that the metric reads."""
    own = sample.texts(source)
    other = sample.texts("retrieved_contexts" if source == "user_input" else "user_input")
    nothing_retrieved = source in sample.model_fields_set and not own
    if nothing_retrieved or _has_text(own) or not _has_text(other):
        return sample
    # As AlignmentCoverage joins them.
    return sample.model_copy(update={source: "\n".join(other) if source == "user_input" else other})


def _has_text(texts: Sequence[str]) -> bool:
    return any(text.strip() for text in texts)
