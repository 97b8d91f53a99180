"""The asyncio clients of any Kafka broker: producer, admin, fetching, and the commands that use them.

Below them stand `cluster` (metadata and connections to its nodes), `network` (one connection), `configuration` (typed
settings) and `errors`. What a program imports is re-exported by `odradek`.
"""
