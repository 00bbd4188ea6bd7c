"""Claims: what a text says, sentence by sentence or as the judge lists it, and whether another text supports it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ragstone.judging import TEXT, Answer, CannotScore, Flow, distinct, json_form, listing, record
from ragstone.metrics.asking import WRITTEN, ItemDetails, ask_items, by_map, listed
from ragstone.metrics.base import ItemKind, ItemOrigin, Metric
from ragstone.metrics.fitted import SUPPORTED, length
from ragstone.metrics.values import expected_share, least, reworded, share_of, verdicts_of
from ragstone.outcome import Evidence, Score, Verdict
from ragstone.plain import is_visible
from ragstone.sample import Sample, SampleField
from ragstone.text import WINDOW, Splitter, iter_sentences, language_of, split_sentences

_CLAIMS = json_form(record(claims=listing(TEXT)))
CLAIM_WORDS = ("supported", "contradicted", "not_in_source")
_SUPPORT = {"yes": "supported", "no": "unsupported"}
CHECK_AGAINST_CONTEXT = (
    "Check claims against a context, and against nothing that you know. supported: the context says it or it plainly "
    "follows. contradicted: the context says otherwise. not_in_source: neither."
)
IS_SUPPORTED = "Is the claim supported by the text?"
SUPPORT_EXAMPLES = """

Examples of how to decide:
Text: The bakery opens at seven on weekdays and at eight on Saturdays. Its rye bread is baked twice a day.
Claim: Rye bread comes out of the oven two times daily. Answer: yes
Claim: The bakery opens at seven on Saturdays. Answer: no
Text: Dr. Lena Ortiz led the survey of the reef in 2011; her assistant Tom Reyes drew the maps.
Claim: Tom Reyes made the maps of the reef. Answer: yes
Claim: Tom Reyes led the survey. Answer: no
Text: The museum lends out umbrellas for a deposit of five euros. Lockers are free.
Claim: You pay nothing for a locker. Answer: yes
Claim: All services of the museum are free. Answer: no"""


@dataclass(frozen=True)
class Claim:
    """A claim of the response, and where it stands: nowhere, when the judge worded it."""

    text: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SplittingMetric(Metric):
    """A metric whose verdicts point to the sentences of a text.

    Args:
        language: Of the text, for splitting it. None: by its script (`ragstone.text.language_of`), which is enough for
            English and for scripts other than Latin and Cyrillic.
        splitter: Another sentence splitter.
    """

    language: str | None = None
    splitter: Splitter = split_sentences

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.language not in (None, "en"):
            # An unknown language is refused here, not at the first sample.
            self.splitter("", self.language)

    @property
    def has_written_claims(self) -> bool:
        """Whether claims are written: by a judge that is asked together, or by a claim checker's writer."""
        return self.writer is not None if self.claims_only else not self.asks_one_by_one

    def find_claims(
        self, name: str, sample: Sample, field: Literal["response", "reference"] = "response"
    ) -> Flow[tuple[Claim, ...]]:
        """Return the claims of a field: its sentences, or what the judge lists of the text, which is called `name`.

        A small judge lists claims badly, and a sentence costs no call.
        """
        if not self.has_written_claims:
            return self.sentence_claims(sample, field)
        return self.ask_json(
            "claims",
            {name: "".join(sample.texts(field))},
            f"List the claims of this {name}.",
            _CLAIMS,
            lambda value: tuple(map(Claim, distinct(value["claims"], "claim"))),
            WRITTEN,
        )

    def claims_kind(self, kind: str, source: str) -> ItemKind:
        """Return the kind of claims that a person checks against a text: asked one by one, they are sentences."""
        words = ("supported", "unsupported") if self.asks_one_by_one else CLAIM_WORDS
        origin: ItemOrigin = "judge" if self.has_written_claims else "text"
        return ItemKind(kind, f"Is it supported by the {source}?", words, origin)

    def sentences(self, sample: Sample, field: SampleField) -> Flow[list[Evidence]]:
        """Return the sentences of a field in order, without the white space around them.

        Offsets count from the start of the text, or of the chunk for `retrieved_contexts`. A language of None is each
        text's own, by its script. It asks nothing, and yields an empty round behind each `WINDOW` of characters.
        """
        split = iter_sentences if self.splitter is split_sentences else self.splitter
        sentences: list[Evidence] = []
        # The last empty round, in characters.
        since = 0
        for i, text in enumerate(sample.texts(field)):
            chunk = i if field == "retrieved_contexts" else None
            for _, start, end in split(text, self.language or language_of(text)):
                since += end - start
                if since > WINDOW:
                    since = 0
                    yield ()
                piece = text[start:end]
                bare = piece.strip()
                if is_visible(bare):
                    left = start + len(piece) - len(piece.lstrip())
                    sentences.append(Evidence(field=field, chunk=chunk, start=left, end=left + len(bare), text=bare))
        return sentences

    def sentence_claims(self, sample: Sample, field: SampleField) -> Flow[tuple[Claim, ...]]:
        """Return each sentence of a field as a claim; one that is repeated counts once, where it stands first."""
        sentences = yield from self.sentences(sample, field)
        claims: dict[str, Claim] = {}
        for sentence in sentences:
            claims.setdefault(sentence.text, Claim(sentence.text, (sentence,)))
        return tuple(claims.values())

    def check_claims(
        self, claims: Sequence[Claim], name: str, sample: Sample, field: SampleField
    ) -> Flow[list[Answer]]:
        """Have each claim checked against the texts of a field, which are called `name`.

        Asked one by one, probabilities are mapped to the share of supported claims among labelled ones
        (`ragstone.metrics.fitted`).
        """
        texts = [claim.text for claim in claims]
        if self.asks_one_by_one:
            data = {"text": "\n".join(sample.texts(field))}
            asked = yield from ask_items(self, "verdict", data, texts, kind="claim")
            mapped = by_map(self, SUPPORTED, asked, length=length(data["text"]))
            pairs = zip(mapped, claims, strict=True)
            return [reworded(answer, _SUPPORT, *claim.evidence) for answer, claim in pairs]
        sentences = yield from self.sentences(sample, field)
        data = {name: listed(sentences)}
        details = ItemDetails(task="Check each of the {n} claims", reply="verdicts", sentences=sentences)
        return (yield from ask_items(self, "verdicts", data, texts, CLAIM_WORDS, kind="claim", details=details))


@dataclass(frozen=True, kw_only=True)
class SupportedClaims(SplittingMetric):
    """A metric that is the share of a text's claims that the retrieved contexts support."""

    has_expected: ClassVar[bool] = True
    checks_claims: ClassVar[bool] = True
    examples: ClassVar[Mapping[str, str]] = {"verdict": SUPPORT_EXAMPLES}
    claims_of: ClassVar[Literal["response", "reference"]]

    @property
    def item_kinds(self) -> Sequence[ItemKind]:
        """The claims."""
        return (self.claims_kind("claim", "contexts"),)

    @classmethod
    def value_of(cls, verdicts: Sequence[Verdict], sample: Sample, options: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return the share of supported claims."""
        return share_of(verdicts, "claim", "supported")

    def _flow(self, sample: Sample) -> Flow[Score]:
        self._fits(sample, *self.required_fields)
        claims = yield from self.find_claims(self.claims_of, sample, self.claims_of)
        if not claims:
            raise CannotScore("undefined", f"the judge found no claims in {self.claims_of} (0 of 0)")
        checks = yield from self.check_claims(claims, "context", sample, "retrieved_contexts")
        supported = sum(check.choice == "supported" for check in checks)
        breakdown = {"supported": float(supported), "claims": float(len(claims))}
        expected = expected_share(checks, "supported")
        if expected is not None:
            breakdown["least"] = least(checks, "supported")
        verdicts = verdicts_of("claim", [claim.text for claim in claims], checks, "supported")
        of = "" if self.claims_of == "response" else f" of the {self.claims_of}"
        return self._score(
            self.value_of(verdicts, sample, {}),
            f"{supported} of {len(claims)} claims{of} supported.",
            expected=expected,
            breakdown=breakdown,
            verdicts=verdicts,
        )


def whole_context(sample: Sample, i: int) -> Evidence:
    """Return a retrieved context as evidence."""
    text = sample.retrieved_contexts[i]
    return Evidence(field="retrieved_contexts", chunk=i, start=0, end=len(text), text=text)
