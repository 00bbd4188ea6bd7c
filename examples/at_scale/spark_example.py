"""Scores a Spark data frame on two cores. Needs pyspark, pandas, pyarrow and a Java runtime."""

import os
import sys
from importlib import import_module
from typing import Any

from ragstone.batch import Scorer

ROWS = [(f"q{i}", "How many bridges has Porto?", ["Porto has 6 bridges."]) for i in range(99)]

if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python, which has ragstone
    sql: Any = import_module("pyspark.sql")
    scorer = Scorer(["context_relevancy"], llm="words:SharedWords", share=2)
    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.createDataFrame(ROWS, "id string, user_input string, retrieved_contexts array<string>")
    outcomes = rows.repartition(4).mapInPandas(scorer.frames, scorer.spark_schema).toPandas()
    spark.stop()
    print(outcomes.groupby("metric")["value"].agg(["count", "mean"]))
