"""Krippendorff's alpha of ragstone beside that of the package krippendorff (GPL: no dependency, none of its code).

    python -m venv /tmp/alpha && /tmp/alpha/bin/pip install krippendorff ".[calibrate]"
    /tmp/alpha/bin/python benchmarks/alpha.py

On 2026-11-25, krippendorff 0.9.0:

    words: at most 2e-15 apart
    scores: at most 2e-15 apart
"""

import krippendorff
import numpy as np

from ragstone.labels.agreement import agreement


def main() -> None:
    rng = np.random.default_rng(0)
    worst = {"words": 0.0, "scores": 0.0}
    for n in (2, 5, 20, 100, 1_000):
        for _ in range(200):
            words = rng.choice(["supported", "contradicted", "not_in_source"], (2, n), p=rng.dirichlet([1, 1, 1]))
            scores = rng.integers(0, 5, (2, n)) / 4
            words[1], scores[1] = (np.where(rng.random(n) < rng.random(), of[0], of[1]) for of in (words, scores))
            for name, both, level in (("words", words, "nominal"), ("scores", scores, "interval")):
                if len(np.unique(both)) > 1:  # else both say that it is undefined
                    alpha = agreement(both[0].tolist(), both[1].tolist()).alpha
                    theirs = krippendorff.alpha(reliability_data=both, level_of_measurement=level)
                    worst[name] = max(worst[name], abs(alpha.mean - theirs))
    for name, apart in worst.items():
        print(f"{name}: at most {apart:.0e} apart")


if __name__ == "__main__":
    main()
