"""Measurements beside Apache Kafka, in one run on one machine: `make bench`, or `python -m benchmarks [PART]`.

A measurement is a module here, listed in `catalogue`. They stand on `harness` (plan, servers, contests, results),
`load` (generators and what they meet), `figures` (medians, spreads, tables) and `host` (the machine under measurement).
`clients` compares clients, each in a process of `contenders`; `scale` is for docs/scale.md alone. How it is measured,
and what came out, stands in docs/performance.md.
"""
