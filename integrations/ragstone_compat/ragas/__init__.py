"""Scripts for ragas run on ragstone where their imports name `ragstone_compat.ragas` in the place of `ragas`.

    from ragstone_compat.ragas import EvaluationDataset, evaluate
    from ragstone_compat.ragas.metrics import Faithfulness, answer_relevancy
    from ragstone_compat.ragas.llms import LangchainLLMWrapper

What is not there is an ImportError that names what to use instead.
"""

from ragstone import __version__ as __version__
from ragstone_compat.ragas.dataset_schema import EvaluationDataset as EvaluationDataset
from ragstone_compat.ragas.dataset_schema import SingleTurnSample as SingleTurnSample
from ragstone_compat.ragas.evaluation import aevaluate as aevaluate
from ragstone_compat.ragas.evaluation import evaluate as evaluate
from ragstone_compat.ragas.missing import refuse as __getattr__  # noqa: F401 - for what is not there
from ragstone_compat.ragas.run_config import RunConfig as RunConfig
