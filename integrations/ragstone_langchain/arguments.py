"""What an evaluator is called with, read as a run is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragstone.adapters.fields_by_user import BY_USER, FoundFields, attempt, kind, names_of
from ragstone.adapters.narrowing import narrowed
from ragstone.adapters.runs import Run, Unreadable
from ragstone.fields.names import ORIGINALS, STRONG
from ragstone.fields.read import Found
from ragstone.metrics import Metric
from ragstone.plain import printable
from ragstone.sample import IdField, Sample, SampleField
from ragstone_langchain.forms import FORMS, as_texts, contexts_of
from ragstone_langchain.inside import Inside
from ragstone_langchain.read import Ended, ReadingOptions, draft_of_run, fields_of_run
from ragstone_langchain.searches import ids_of

_PLACES: Mapping[SampleField | IdField, tuple[str, ...]] = {
    "user_input": ("inputs", "outputs"),
    "response": ("outputs",),
    "retrieved_contexts": ("context", "inputs", "outputs"),
    "reference": ("reference_outputs",),
    "reference_ids": ("reference_outputs", "inputs"),
    "retrieved_ids": ("outputs",),
}
_WAYS_OUT: Mapping[SampleField | IdField, str] = {
    "user_input": "pass inputs as text, a message or a mapping with one of %s",
    "response": "pass outputs as text, an AI message with text, or a mapping with one of %s",
    "retrieved_contexts": "pass context as texts or Documents, or outputs with one of %s; an agent's tool keeps "
    "Documents in its artifact or is named in retriever_tools",
    "reference_ids": "pass reference_outputs with one of %s",
    "retrieved_ids": "pass Documents that have ids, or outputs with one of %s",
    "reference": "pass reference_outputs as text, or a mapping with one of %s or with an answer",
}
# Names that a message says; docs/fields.md has all.
_NAMES = 6
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
            named = Run("context", "named", output=attempt(contexts_of, self.context, "context"))
            named.ids = None if reading.id_key is None else ids_of(self.context, reading.id_key)
            inside.append(named)
        run = Run("", "chain", inputs=self.inputs, output=self.outputs, inside=inside)
        ended = Ended(run, Inside().note(run), reading, self.reference_outputs)
        fields = fields_of_run(ended)
        if fields is None:
            raise Unreadable("fields: the function returned None; return a Sample or a mapping of its fields")
        if isinstance(fields, Sample):
            return fields
        source = metric.source_field
        if source is not None:
            fields = {**fields, **self._original(source, fields)}
        sample = narrowed(draft_of_run(fields, ended)).sample
        problems = {field: value for field, value in fields.items() if isinstance(value, Unreadable)}
        wrong_keys: Sequence[SampleField | IdField] = [field for field in names_of(reading.fields) if field in problems]
        if source is not None and not wrong_keys and not metric.source_chosen:
            sample = _with_original(sample, source)
        for field in wrong_keys or metric.required_fields:
            if field not in sample.model_fields_set:
                raise Unreadable(self._why_not(field, problems.get(field)))
        return sample

    def _original(self, source: SampleField, fields: FoundFields) -> FoundFields:
        """What a summary is of, where the inputs have it under its own name: an instruction may stand beside it."""
        entries, there = FORMS.entries(self.inputs) or {}, fields.get(source)
        said = ("inputs.user_input", BY_USER) if source == "user_input" else None
        if isinstance(there, Found) and (said is None or there.name in said):
            return {}
        held = (FORMS.value("retrieved_contexts", entries[name]) for name in ORIGINALS if name in entries)
        texts = next((as_texts(value) for value in held if value is not None), None)
        if texts is None:
            return {}
        return {source: Found(_as_one_text(texts) if source == "user_input" else texts, "inputs")}

    def _why_not(self, field: SampleField | IdField, problem: Unreadable | None) -> str:
        if self.error is not None:
            return f"the app failed: the target raised {printable(self.error.partition(chr(10))[0], 300)}"
        # LangSmith packs None so.
        if self.outputs == {"output": None}:
            return "the app returned nothing (None)"
        places = [f"{name} ({kind(getattr(self, name), FORMS)})" for name in _PLACES[field]]
        why = problem or f"is not in {' or '.join(places)}"
        names = ", ".join(map(repr, STRONG[field][:_NAMES]))
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
    return sample.model_copy(update={source: _as_one_text(other) if source == "user_input" else other})


def _as_one_text(texts: Sequence[str]) -> str:
    """Texts as AlignmentCoverage joins them."""
    return "\n".join(texts)


def _has_text(texts: Sequence[str]) -> bool:
    return any(text.strip() for text in texts)
