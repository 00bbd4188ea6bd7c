"""Four rows of each of the development data's files, which lie beside the repository or not at all.

With the embedded judge on one core a call takes some three seconds. So it is asked about the files with short texts,
some 90 calls in all, five minutes; ten passages of HotpotQA, WikiEval's pages and the articles and stories that were
summarised take as long for each row. The scripted judge is asked about all files.
"""

import json

import pytest
from agreement.rows import read_folder
from agreement.scoring import Settings, score_folder
from agreement.table import write_table

from ragstone.local import LocalEmbedder, LocalLLM
from ragstone.testing import FakeEmbedder

from .data import DEV, judge

pytestmark = pytest.mark.skipif(not DEV.is_dir(), reason=f"needs the development data in {DEV}")

SHORT = (
    "context_relevancy__clapnq",
    "noncommittal__xstest",
    "response_relevancy__haluquestqa",
    "response_relevancy__mtrag_turn1",
    "response_relevancy__wikieval",
)


def four_rows(out, llm, embedder, file=None):
    data, few = read_folder(DEV), read_folder(DEV, 4)
    if file is not None:
        data, few = {file: data[file]}, {file: few[file]}
    score_folder(data, few, out, Settings(), llm, embedder)
    content = json.loads(write_table(out)[1].read_text())
    assert {cost["file"] for cost in content["cost"]} == {entry["file"] for entry in content["table"]} == set(few)
    assert all(cost["rows"] >= 4 for cost in content["cost"])
    return content


def test_scripted_judge(tmp_path):
    content = four_rows(tmp_path, judge(), FakeEmbedder())
    assert all(cost["scored"] == cost["rows"] for cost in content["cost"])


@pytest.fixture(scope="module")
def embedded():
    embedder = LocalEmbedder()
    with LocalLLM() as llm:
        try:
            embedder.embed(["load"])
            llm.load()
        except (ImportError, OSError) as error:
            pytest.skip(f"needs the embedded models: {error}")
        yield llm, embedder


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("file", SHORT)
def test_embedded_judge(tmp_path, embedded, file):
    content = four_rows(tmp_path, *embedded, file)
    (cost,) = content["cost"]
    assert cost["scored"] >= cost["rows"] - 1, cost  # the judge may fail to write a list of questions
    assert cost["calls"] > cost["rows"]
    assert cost["input_tokens"] > 0
