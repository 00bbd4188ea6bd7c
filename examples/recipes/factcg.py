"""FactCG-DeBERTa-v3-Large (MIT) as a claim checker, by onnxruntime and tokenizers, in the file's own folder.

pip install "optimum-onnx[onnxruntime]"
optimum-cli export onnx --model yaxili96/FactCG-DeBERTa-v3-Large --task text-classification factcg_model
ragstone score samples.jsonl --metric faithfulness --llm checker:factcg:FactCG
"""

from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from ragstone import BaseClaimChecker

FOLDER = Path(__file__).with_name("factcg_model")


def prompt(text, claim):
    """One segment: text and claim as two, as other cross-encoders take them, yield garbage."""
    question = f'Choose your answer: based on the paragraph above can we conclude that "{claim}"?'
    return f"{text}\n\n{question}\n\nOPTIONS:\n- Yes\n- No\nI think the answer is "


class FactCG(BaseClaimChecker):
    model = identity = "FactCG-DeBERTa-v3-Large"
    in_turn = True  # it computes in this process
    most_tokens = 700  # its authors cut at 550 words

    def __init__(self, folder=FOLDER):
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.session = onnxruntime.InferenceSession(folder / "model.onnx")

    def check(self, text, claims, /):
        return [self.supported(self.tokenizer.encode(prompt(text, claim))) for claim in claims]

    def supported(self, encoded):
        inputs = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask}
        (logits,) = self.session.run(["logits"], {name: np.asarray([each]) for name, each in inputs.items()})
        return float(1 / (1 + np.exp(logits[0, 0] - logits[0, 1])))  # label 1: supported
