"""`make demo`: a broker of its own, real flights through kafka-python and Spark, SIGKILL for both, everything compared;
a group of two of our consumers that reads Spark's results, of which one is killed; an exactly-once copy of the flights
by our own client, which is killed in a transaction; then three brokers on etcd, of which leaders are killed in
mid-stream.

`pipeline` is the story, step by step, with `exactly_once` and `failover` for its later parts. `results_member` and
`flight_copier` are programs with our own client, to be run as processes and killed; `client_process`, `broker_process`,
`spark_process`, `etcd_process`, `three_brokers` and `results_group` hold the child processes. `load`, `following` and
`verify` are the kafka-python side and the statistics without Spark, `steps` draws progress and times. kafka-python and
etcd are development dependencies: the demo is the only package here that needs them.
"""
