"""From a call of the program to the accumulator: hooks, size, partition, memory, and the waits for what is missing.

`record_intake` takes one record, `bulk` many. From here on a record is in a batch, which is `batching`'s.
"""
