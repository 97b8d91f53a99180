"""`make demo`: a broker of its own, real flights through kafka-python and Spark, SIGKILL for both, everything compared;
a group of two of our consumers that reads Spark's results, of which one is killed; then three brokers on etcd, of which
leaders are killed in mid-stream.

`pipeline` is the story, step by step, and `failover` its second part; `broker_process`, `spark_process`,
`etcd_process`, `three_brokers` and `results_group` hold the child processes, `load`, `following` and `verify` are the
kafka-python side and the statistics without Spark, `steps` draws progress and times. kafka-python and etcd are
development dependencies: the demo is the only package here that needs them.
"""
