from chain_app import chain
from data import question
from ragas import EvaluationDataset, evaluate
from ragas.metrics import Faithfulness

state = chain.invoke({"question": question})
contexts = [document.page_content for document in state["context"]]
row = {"user_input": question, "retrieved_contexts": contexts, "response": state["answer"]}
print(evaluate(EvaluationDataset.from_list([row]), [Faithfulness()]))
