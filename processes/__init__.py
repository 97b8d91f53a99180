"""Programs that tests and benchmarks start, stop and pause: our broker and clusters, Apache Kafka and its tools, etcd.

What is in here knows nothing of tests and benchmarks, and is not installed. Java archives are fetched by `jars`, each
checked against jars.sha256.
"""
