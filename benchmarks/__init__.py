"""Measurements beside Apache Kafka, in one run on one machine: `make bench`, or `python -m benchmarks [PART]`.

How it is measured, and what came out, stands in docs/performance.md.
"""
