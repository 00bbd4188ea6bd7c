from chain_app import chain
from data import question

from ragstone import Monitor
from ragstone_langchain import MonitorHandler

with Monitor("faithfulness", llm="openai:gpt-5-mini") as monitor:
    chain.invoke({"question": question}, {"callbacks": [MonitorHandler(monitor)]})
