"""The machine room of coordinators: replicated state machines, one for each partition of an internal topic that this
broker leads.

What a machine is, and what it is given, says `machine`; groups have theirs in `broker.group`. A `shard` loads its
partition's log into a machine, hands requests to it, appends what it wants written, and lets an answer go when
everything that the answer depends on is committed.
"""
