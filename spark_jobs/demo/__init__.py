"""`make demo`: a broker of its own, real flights through kafka-python and Spark, SIGKILL for both, everything compared.

`pipeline` is the story, step by step; `broker_process` and `spark_process` hold the child processes, `load` and
`verify` are the kafka-python side and the statistics without Spark, `steps` draws progress and times. kafka-python is
a development dependency: the demo is the only module of this package that needs it.
"""
