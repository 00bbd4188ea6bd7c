"""The real models: skipped when `ragstone pull` has not been run."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ragstone.judge import LLMRequest
from ragstone.local import LocalEmbedder, LocalLLM
from ragstone.local.files import EMBEDDER_FILE, LLM_FILE, TOKENIZER_FILE, installed_path

pytestmark = pytest.mark.model

CORE = str(Path(__file__).parents[2] / "core")
CONTEXT = "The Harbour lighthouse was built in 1871. Its lamp was converted to electricity in 1928. "


def needed(*files):
    try:
        for file in files:
            installed_path(file)
    except (FileNotFoundError, ImportError) as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def llm():
    needed(LLM_FILE)
    pytest.importorskip("xllamacpp")
    with LocalLLM(context_tokens=4096) as llm:
        llm.load()
        yield llm


@pytest.fixture(scope="module")
def embedder():
    needed(EMBEDDER_FILE, TOKENIZER_FILE)
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    return LocalEmbedder()


def claim(text, choices=("yes", "no"), context=CONTEXT):
    user = f"Context: {context}\n\nClaim: {text}\nDoes the context support the claim?"
    return LLMRequest("test", "You check claims. Answer with one word.", user, {}, choices=choices)


def test_choices_have_probabilities_that_mean_something(llm):
    true = llm.generate(claim("The lamp is electric since 1928."))
    false = llm.generate(claim("The lighthouse was built in 1950."))
    for reply in (true, false):
        assert sum(reply.probabilities.values()) == pytest.approx(1)
        assert reply.text == max(reply.probabilities, key=reply.probabilities.get)
    assert true.probabilities["yes"] > 0.7 > 0.3 > false.probabilities["yes"]
    assert true.input_tokens > 40
    assert true.output_tokens == 1
    shared = llm.generate(claim("The lighthouse was built in 1950.", ("consistent", "contradicted")))
    assert shared.text == "contradicted"


def test_event_loop_runs_on_and_a_cancelled_call_ends(llm):
    # Bound by the schema: a model that is only asked for a long story may say in one line that it will not.
    words = {"type": "array", "items": {"enum": ["north", "south"]}, "minItems": 300, "maxItems": 300}
    long = LLMRequest("t", "Write.", "Write the way of a long journey.", words)

    async def main():
        ticks = 0
        task = asyncio.create_task(llm.agenerate(long))
        start = time.monotonic()
        while time.monotonic() - start < 2:
            await asyncio.sleep(0.01)
            ticks += 1
        assert not task.done(), task.exception() or task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await llm.agenerate(claim("The lamp is electric."))  # the long reply has ended and does not block this
        return ticks, task.cancelled()

    ticks, cancelled = asyncio.run(main())
    assert ticks > 20  # of 200; a held GIL leaves single digits
    assert cancelled


def test_interpreter_exits_cleanly_without_close():
    needed(LLM_FILE)
    pytest.importorskip("xllamacpp")
    code = f"""
import sys, threading, time
sys.path.insert(0, {CORE!r})
from ragstone.judge import LLMRequest
from ragstone.local import LocalLLM
llm = LocalLLM(context_tokens=2048)
llm.load()
cycle = [llm]; cycle.append(cycle)
request = LLMRequest("t", "Write.", "Write a very long story.", {{}})
threading.excepthook = lambda args: None
threading.Thread(target=llm.generate, args=(request,), daemon=True).start()
time.sleep(1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""


def test_embeddings(embedder):
    rows = embedder.embed(
        ["When was the tower finished?", "In which year was the tower completed?", "Cats purr when they are content."]
    )
    assert rows.shape == (3, 384)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[0] @ rows[1] > 0.7 > 0.3 > rows[0] @ rows[2]
