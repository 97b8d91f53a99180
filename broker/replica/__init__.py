"""One replica of a partition, on this broker: its role, what of its log counts and may be read, and those who wait.

`partition` holds the parts together; who else has replicas is known as a value (`replicas`). What brokers say to one
another about them is `replication`, the table of all that are here `partitions`.
"""
