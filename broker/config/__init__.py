"""Options: rows with Kafka's names, types, defaults and bounds, which layer of them counts, and how they are altered.

The words of a command line are read in `launch`.
"""
