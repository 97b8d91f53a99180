"""A consumer's part in its group: what runs the pure membership, commits offsets, and finds where reading begins.

`group_session.py` is what the consumer holds. The requests go by `coordinator.py`, over `line.py`; what they say stands
in `group_messages.py` and `offset_messages.py`. `partition_changes.py` gives partitions up and takes them.
"""
