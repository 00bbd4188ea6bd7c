"""A LlamaIndex query engine."""

from data import contexts
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

index = VectorStoreIndex([TextNode(text=each) for each in contexts], embed_model=MockEmbedding(embed_dim=8))
engine = index.as_query_engine(llm=MockLLM())
