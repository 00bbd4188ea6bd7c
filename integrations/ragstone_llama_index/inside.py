"""What the calls inside of a run gave: contexts that the app named, and the sources that its answer rests on."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from llama_index.core.agent.workflow import AgentOutput, ToolCallResult
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import ToolOutput

from ragstone.adapters.runs import CANCELLED, Run
from ragstone.fields.read import Found, Read
from ragstone.plain import as_dict, as_list
from ragstone_llama_index.forms import (
    EMPTY,
    Node,
    NodeOrText,
    nodes_in,
    read_output,
    sources_in,
    text_or_none,
)

if TYPE_CHECKING:
    from ragstone.adapters.answering import ModelCall

Asked = Literal["query", "chat", "workflow", "step"]
Finding = Literal["retrieval", "objects", "rerank", "tool", "named"]
Writing = Literal["synthesis", "text", "model", "writing"]
CallKind = Asked | Finding | Writing | Literal[""]
"""What a run is. "step": a function; "objects": a retrieval of tools or tables, whose descriptions are no sources;
"named": a `contexts(...)`; "text": a synthesis of texts."""

ENTRIES: tuple[CallKind, ...] = ("query", "chat", "workflow")
_CHOOSING: tuple[CallKind, ...] = ("synthesis", "rerank")
_GIVING: tuple[CallKind, ...] = ("retrieval", "tool", *_CHOOSING, *ENTRIES)
_ANSWERING: tuple[CallKind, ...] = ("synthesis", *ENTRIES)
# What gives nothing before it ends.
_WAITED: tuple[CallKind, ...] = ("query", "chat", "tool")
_COMPOSED = re.compile(r"Sub question: .*?\nResponse: |\nQuestion: .*?\nAnswer: |Query: .*?\nResponse: ", re.DOTALL)
"""How a node begins into which one of LlamaIndex' engines or retrievers has put an answer of an inner engine."""
Stated = tuple[Sequence[NodeOrText], str]
"""Sources, and the name that they stood under."""
_NOTHING = Found(None, "")


class Inside:
    """The sources that the calls inside of a run gave.

    A node that a retriever returned is a source, whatever it says. Any other may hold what an inner engine answered:
    then that engine's sources stand in its place. What failed or was cancelled, and what lies below it, gave none:
    where the app survived that, its answer rests on others.

    Attributes:
        named: What the app has named as contexts.
        calls: What models were given, and what they said.
        searched: Whether a retriever has come to an end.
    """

    def __init__(self, run: Run, tools: Collection[str]) -> None:
        self.named: list[str] = []
        self.calls: list[ModelCall] = []
        self.searched = False
        self._tools = tools
        # The ids of nodes that retrievers returned.
        self._retrieved: set[str] = set()
        self._note(run)

    def _note(self, run: Run) -> None:
        for each in _counting(run):
            if each.kind == "named":
                self.named += map(str, as_list(each.output))
            elif each.kind == "retrieval":
                self.searched = True
                if not (each.inside and any(one.kind in _ANSWERING for one in each.walk())):
                    self._retrieved.update(map(_id_of, nodes_in(each.output)))
            if each.call is not None:
                self.calls.append(each.call)
            if each.inside:
                self._note(each)

    def stated(self, run: Run, output: Read, answer: Found | None = None) -> Stated:
        """The sources in what a run returned, as it was read, or in an answer in its place, and their name."""
        if run.kind == "text":
            texts = as_list(as_dict(run.inputs).get("text_chunks"))
            return [text for text in texts if isinstance(text, str)], "inputs.text_chunks"
        contexts = output.found.get("retrieved_contexts", _NOTHING)
        # A text alone may be what a prompt was given.
        if contexts.value and not isinstance(contexts.raw, str):
            return self._without_answers(sources_in(contexts.raw) or (), run), contexts.name
        answer = answer or output.found.get("response") or Found(None, "the output itself", run.output)
        nodes = nodes_in(answer.raw)
        name = "source_nodes" if answer.raw is run.output else f"{answer.name}.source_nodes"
        if run.inside:
            return self._without_answers(nodes, run), name
        return [node for node in nodes if not _is_composed(node)] or _of_tools(answer.raw, self._tools), name

    def sources(self, run: Run) -> Sequence[NodeOrText]:
        """The sources that the calls inside of a run gave; a synthesizer's or reranker's are chosen from the rest."""
        chosen: list[NodeOrText] = []
        found: list[NodeOrText] = []
        for each in _giving_calls(run):
            given = self._given(each, run)
            if each.kind in _CHOOSING and each.output is None:
                continue
            if each.kind == "rerank":
                found = _without_nodes(found, each.inputs)
            elif each.kind == "synthesis" and (given or not nodes_in(each.output)):
                # Where all of its nodes were written on the way, what was found before stays.
                chosen, found, given = [*chosen, *given], [], ()
            found += given
        return chosen + found

    def _given(self, run: Run, around: Run) -> Sequence[NodeOrText]:
        """The sources that a call gave, in place of what the calls inside of it gave."""
        if run.kind in _CHOOSING:
            return self._without_answers(nodes_in(run.output), around, before=run)
        if run.kind == "retrieval" and run.output is not None:
            return self._without_answers(nodes_in(run.output), run)
        if run.kind in ENTRIES:
            return self.stated(run, read_output(run.output))[0] or self.sources(run)
        own = tool_sources(run.output, self._tools) if isinstance(run.output, ToolOutput) else ()
        return self._without_answers(own, run) or self.sources(run)

    def _without_answers(
        self, sources: Sequence[NodeOrText], run: Run, before: Run | None = None
    ) -> Sequence[NodeOrText]:
        """Sources, but in place of a node that holds what calls inside of a run answered, what that rests on."""
        found: list[NodeOrText] = []
        answers: Sequence[tuple[Run, str, str]] | None = None
        for source in sources:
            if isinstance(source, str) or _id_of(source) in self._retrieved:
                found.append(source)
                continue
            answers = _answers(run, before) if answers is None else answers
            text = source.get_content().strip() if answers else ""
            written = [each for each, asked, said in answers if text == said or (text.endswith(said) and asked in text)]
            found += [one for each in written for one in self._given(each, run)] if written else [source]
        return found


def _counting(run: Run) -> Sequence[Run]:
    """The calls inside of a run that count: all of them where it failed itself, else those that did not."""
    counting: list[Run] = []
    for each in run.inside:
        # A step may have sent on what it found before it was cancelled.
        failed = each.error is not None and not (each.kind == "step" and isinstance(each.error, CANCELLED))
        waited = each.kind in _WAITED and each.open and each.output is None
        if each.kind != "objects" and (run.error is not None or not (failed or waited)):
            counting.append(each)
    return counting


def _giving_calls(run: Run) -> Iterator[Run]:
    """Yield the outermost calls inside of a run that may give sources."""
    for each in _counting(run):
        if each.kind in _GIVING:
            yield each
        else:
            yield from _giving_calls(each)


def _answers(run: Run, before: Run | None) -> Sequence[tuple[Run, str, str]]:
    """The calls inside of a run that answered before another one began, with question and answer."""
    answers: list[tuple[Run, str, str]] = []
    for each in run.walk():
        if each is before:
            break
        if each.kind in _ANSWERING and each.output is not run.output:
            answer = read_output(each.output).value("response")
            if isinstance(answer, str):
                # Without a question the answer alone is it.
                answers.append((each, first_argument(each) or EMPTY, answer.strip() or EMPTY))
    return answers


def first_argument(run: Run) -> str | None:
    """The text that a call was given first: what an engine is asked, or a retriever looks for."""
    return next((text_or_none(value) for value in as_dict(run.inputs).values()), None)


def _id_of(node: Node) -> str:
    inner = node.node if isinstance(node, NodeWithScore) else node
    return inner.id_


def _without_nodes(sources: Iterable[NodeOrText], nodes: object) -> list[NodeOrText]:
    # Two indexes may name their nodes alike, so texts are compared.
    texts = {node.get_content() for node in nodes_in(nodes)}
    return [each for each in sources if isinstance(each, str) or each.get_content() not in texts]


def _is_composed(node: Node) -> bool:
    """Whether a node looks like an inner engine's answer. What was read from a source has metadata or relations."""
    inner = node.node if isinstance(node, NodeWithScore) else node
    return not (inner.metadata or inner.relationships) and _COMPOSED.match(inner.get_content()) is not None


def _of_tools(answer: object, tools: Collection[str]) -> Sequence[NodeOrText]:
    # Declared as the choice of a tool; what an agent puts there is the call with its result.
    calls: Sequence[object] = answer.tool_calls if isinstance(answer, AgentOutput) else ()
    outputs = [call.tool_output for call in calls if isinstance(call, ToolCallResult)]
    return [source for output in outputs for source in tool_sources(output, tools)]


def tool_sources(output: ToolOutput, tools: Collection[str]) -> Sequence[NodeOrText]:
    """The sources in what a tool returned: its nodes, or the texts of one whose name is among those given."""
    nodes = nodes_in(output.raw_output)
    if nodes or output.is_error or output.tool_name not in tools:
        return nodes
    return [each for each in as_list(output.raw_output) if isinstance(each, str)] or [output.content]
