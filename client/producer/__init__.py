"""The producer: a record's way from `send` to its acknowledgement (docs/architecture.md).

`producer.py` is what a program holds, `config.py` its settings, `record.py` a record as a caller hands it over. The
rooms are the stations of a record: `hooks`, `accepting`, `batching`, `sending`, `results`; `idempotence` numbers the
batches.
"""
