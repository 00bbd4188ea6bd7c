"""How long it takes to find what the answering call read, off the app's thread: CPU of a prompt of 1 MB.

    python benchmarks/answering.py

50 contexts of 20,000 characters are looked for in prompts that have all, some or none of them, and in prompts that
somebody wrote to make it slow. Of each the answer, another output and the question are as bad as the prompt.
"""

import json
import random
import time

from ragstone.adapters.answering import ModelCall, texts_read

SIZE, CONTEXTS = 1_000_000, 50
ANSWER = "The answer is this one, as it stands there."
HOSTILE = {
    "backslashes": "\\",
    "escapes": "\\u0041",
    "NULs": "\0",
    "half surrogates": "\ud83d",
    "entities": "&ab;",
    "entities without an end": "&a",
    "tags": "<a>",
    "tags without an end": "<",
    "brackets": "[",
    "one letter": "a",
    "words of one letter": "a ",
    "lines of four letters": "abcd\n",
    "accents": "é—",
}


def texts(seed: int) -> list[str]:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5_000)]
    return [" ".join(rng.choices(words, k=4_000))[: SIZE // CONTEXTS] for _ in range(CONTEXTS)]


def agent(found: list[str], rounds: int) -> list[ModelCall]:
    messages: list[str] = []
    calls: list[ModelCall] = []
    for number in range(rounds):
        said = f"I shall look up the thing with the number {number}."
        calls.append(ModelCall([*messages, "Go on."], [said]))
        messages += [said, f"{number}: {found[number % CONTEXTS][:5_000]}"]
    return [*calls, ModelCall(messages, [ANSWER])]


def measure(name: str, found: list[str], calls: list[ModelCall], answer: str = ANSWER, question: str = "Why?") -> None:
    start = time.thread_time()
    read = texts_read(found, calls, answer, question)
    spent = (time.thread_time() - start) * 1000
    print(f"| {name} | {spent:.0f} | {'not known' if read is None else f'{len(read)} of {len(found)}'} |")


def main() -> None:
    found, others = texts(1), texts(2)
    print("| prompt | CPU ms | read |\n|---|--:|---|")
    measure("all of them", found, [ModelCall(["\n".join(found)], [ANSWER])])
    measure("three of them", found, [ModelCall(["\n".join([*found[:3], *others[3:]])], [ANSWER])])
    measure("none of them", found, [ModelCall(["\n".join(others)], [ANSWER])])
    measure("all, as JSON of JSON", found, [ModelCall([json.dumps(json.dumps(found))], [ANSWER])])
    measure("an agent of 200 rounds", found, agent(found, 200))
    graders = [ModelCall([text[:1_000]], ["yes"]) for text in found]
    measure(
        "five of 1 KB, after 50 graders", found, [*graders, ModelCall([text[:1_000] for text in found[:5]], [ANSWER])]
    )
    for name, piece in HOSTILE.items():
        prompt = (piece * (SIZE // len(piece) + 1))[:SIZE]
        cut = [f"{prompt[at : at + SIZE // CONTEXTS]}{at}" for at in range(0, SIZE, SIZE // CONTEXTS)]
        measure(name, cut, [ModelCall([prompt], [prompt]), ModelCall([prompt], [ANSWER])], question=prompt)


if __name__ == "__main__":
    main()
