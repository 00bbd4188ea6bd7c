"""What the scripts score: an answer, a file, a data frame."""

import os

question = "Who wrote Emma?"
contexts = ["Jane Austen wrote Emma. It appeared in 1815."]
answer = "Jane Austen wrote it."
rows = [{"user_input": question, "retrieved_contexts": contexts, "response": answer}] * 2
url = os.environ.get("OPENAI_BASE_URL", "")  # of a judge on this machine
