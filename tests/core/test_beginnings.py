"""Asked one by one, a judge that keeps the beginning of a prompt reads each text once: requests on it begin alike."""

import pytest

from ragstone import (
    AlignmentCoverage,
    ContextRelevancy,
    Faithfulness,
    LLMRequest,
    ResponseCompleteness,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
)
from ragstone.judging.prompt import DATA_NOTICE
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import drive, fenced, truth

SAMPLE = Sample(
    user_input="Who wrote Emma? When did Emma appear?",
    retrieved_contexts=["Emma is a novel. Jane Austen wrote Emma.", "It came out in 1815. Emma has 55 chapters."],
    response="Jane Austen wrote Emma. It came out in 1815. Emma is a novel.",
)
CONTEXT = "\n".join(SAMPLE.retrieved_contexts)
# By metric: the texts that several requests share, from their beginning on, and how many requests do.
SHARED = {
    AlignmentCoverage: [([SAMPLE.user_input], 1 + 3 + 5), ([SAMPLE.response], 5)],
    Faithfulness: [([CONTEXT], 3)],
    SummarizationScore: [([SAMPLE.response], 4)],
    ResponseRelevancy: [([SAMPLE.response], 1 + 1)],
    ResponseCompleteness: [],  # the part of the question first: told better, and most questions have one
    ContextRelevancy: [([SAMPLE.user_input, passage], 2 + 1) for passage in SAMPLE.retrieved_contexts],
}


def requests(metric, options):
    llm = FakeLLM(truth, asking="one_by_one")
    _, rounds = drive(metric(llm=llm, **options), SAMPLE)
    return [request for round_ in rounds for request in round_ if isinstance(request, LLMRequest)]


@pytest.mark.parametrize("metric", SHARED, ids=lambda metric: metric.__name__)
def test_requests_on_a_text_begin_alike_up_to_its_end(metric):
    asked = requests(metric, {"embedder": FakeEmbedder()} if metric is ResponseRelevancy else {})
    names = {}
    for request in asked:
        assert request.system == DATA_NOTICE, "instructions stand behind the data"
        data, behind = fenced(request)
        assert behind.split()
        assert len(set(data.values())) == len(data), "no text is put in twice"
        for name, text in data.items():
            assert names.setdefault(text, name) == name, "one name for a text in all steps"
    for texts, n in SHARED[metric]:
        those = [request.user for request in asked if list(fenced(request)[0].values())[: len(texts)] == texts]
        assert len(those) == n
        ends = {user.index(texts[-1]) + len(texts[-1]) for user in those}
        assert len(ends) == 1
        assert len({user[: ends.copy().pop()] for user in those}) == 1
