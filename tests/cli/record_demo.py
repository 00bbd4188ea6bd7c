"""Records what the embedded judge and embedder say to `ragstone demo`: `python tests/cli/record_demo.py`."""

import json
import sys
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np

from ragstone.batch.evaluate import evaluate
from ragstone.cli.demo import RECORDING
from ragstone.identity import digest_of, reply_key
from ragstone.judge import BaseEmbedder, BaseLLM
from ragstone.local import LocalEmbedder, LocalLLM
from ragstone.results.record import encode_reply


class TapedLLM(BaseLLM):
    asking, gives_probabilities, in_turn = "one_by_one", True, True

    def __init__(self, llm):
        self.llm, self.model, self.replies = llm, llm.model, {}

    def generate(self, request, /):
        reply = self.llm.generate(request)
        print(request.task, file=sys.stderr)
        rounded = reply.probabilities and {word: round(p, 4) for word, p in reply.probabilities.items()}
        self.replies[reply_key(request, "demo")] = encode_reply(replace(reply, probabilities=rounded))
        return reply


class TapedEmbedder(BaseEmbedder):
    def __init__(self, embedder):
        self.embedder, self.model, self.vectors = embedder, embedder.model, {}

    def embed(self, texts, /):
        vectors = self.embedder.embed(texts)
        self.vectors.update(zip(texts, vectors, strict=True))
        return vectors


def record():
    """Return the recording anew, of the samples that stand in it."""
    recording = json.loads(RECORDING.read_text("utf-8"))
    with LocalLLM() as judge:
        llm, embedder = TapedLLM(judge), TapedEmbedder(LocalEmbedder())
        print(evaluate(recording["samples"], "rag", llm=llm, embedder=embedder))
    # Vectors of as many numbers as there are texts, with the same cosines: the triangle of their QR decomposition.
    places = np.linalg.qr(np.array(list(embedder.vectors.values())).T)[1].T
    rounded = [[round(float(x), 3) for x in row] for row in places]
    return {
        **recording,
        "judge": judge.model,
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
        "replies": llm.replies,
        "vectors": dict(zip(map(digest_of, embedder.vectors), rounded, strict=True)),
    }


if __name__ == "__main__":
    parts = record()
    lines = [
        f"{json.dumps(key)}: "
        + (json.dumps(value) if isinstance(value, str) else "{\n" + ",\n".join(
            f"{json.dumps(name)}: {json.dumps(each, separators=(',', ':'))}" for name, each in value.items()
        ) + "\n}" if isinstance(value, dict) else "[\n" + ",\n".join(map(json.dumps, value)) + "\n]")
        for key, value in parts.items()
    ]  # fmt: skip
    RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
