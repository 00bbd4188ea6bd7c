from chain_app import chain
from data import question

from ragstone import Faithfulness, Monitor
from ragstone_langchain import MonitorHandler

with Monitor([Faithfulness(llm="openai:gpt-5-mini")]) as monitor:
    chain.invoke({"question": question}, {"callbacks": [MonitorHandler(monitor)]})
