"""The broker: one process that keeps topics in logs and answers the Kafka protocol.

`server.py` puts a broker together from the rooms, `cluster_member.py` the part of it that belongs to a cluster;
`served.py` is the table of the APIs and their handlers; `startup_errors.py` turns what ends a start into one sentence.
Everything else has a room. Each room's docstring says what belongs in it, and pyproject.toml who may import it.
"""
