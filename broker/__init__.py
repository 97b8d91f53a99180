"""The broker: one process that keeps topics in logs and answers the Kafka protocol. Start with `server.py`."""
