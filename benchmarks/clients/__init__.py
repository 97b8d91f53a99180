"""The part `clients`: Odradek's producer and consumer beside kafka-python, aiokafka and confluent-kafka.

`comparison` is the measurement; each client runs in a process of its own (`benchmarks.contenders`).
"""
