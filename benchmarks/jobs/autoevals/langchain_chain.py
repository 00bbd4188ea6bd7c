from autoevals.ragas import Faithfulness
from chain_app import chain
from data import question

state = chain.invoke({"question": question})
contexts = [document.page_content for document in state["context"]]
print(Faithfulness(model="gpt-5-mini").eval(input=question, output=state["answer"], context=contexts).score)
