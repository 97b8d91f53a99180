"""The log of one partition, in Apache Kafka's own files: appends, reads, truncation, retention, compaction, recovery.

It knows nothing of replicas, clients or other partitions, and touches files through `disk` alone.
"""
