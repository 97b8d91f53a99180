"""The clients under measurement, each with an adapter of its own, and each run in a process of its own.

`job.py` says what a process has to do and what it answers, `__main__.py` is that process, the other modules are the
clients. All producers have the same settings, as far as they have them: acks=all with idempotence, linger 5 ms, 64 KiB
a batch, no compression, murmur2 for keys, and without a key one partition until a batch is full, where the client can
do that. `reading.py` says what consumers have to do, and with which settings.
"""
