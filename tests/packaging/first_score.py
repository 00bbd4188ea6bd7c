"""What each base install must be able to do: numpy (cosines), pysbd (sentences) and pydantic (replies) at work."""

from ragstone import ContextRelevancy, ResponseRelevancy, Sample
from ragstone.testing import FakeEmbedder, FakeLLM

if __name__ == "__main__":
    sample = Sample(user_input="Where?", retrieved_contexts=["Here. Not there."], response="Here.")
    question = {"question": "Where?", "noncommittal": False}
    response = ResponseRelevancy(llm=FakeLLM(lambda _: {"questions": [question] * 3}), embedder=FakeEmbedder())
    context = ContextRelevancy(llm=FakeLLM({"ids": [1]}))
    assert abs(response.score(sample).value - 1.0) < 1e-6, response.score(sample)
    assert context.score(sample).value == 0.5, context.score(sample)
    print("response_relevancy 1.0, context_relevancy 0.5")
