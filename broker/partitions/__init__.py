"""The partitions that this broker has a replica of: the table of them, and the work that is done on all by the clock.

A single partition's role is `replication`, its files are `log`; which directory it lies in is `directories`.
"""
