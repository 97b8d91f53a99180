"""The classic group: its members join, one of them leads, and the leader assigns (Kafka's ClassicGroup). Pure.

`group` is what a shard runs; the other modules are its operations (functions over a `GroupState`) and its values.
Assignments and subscriptions are opaque bytes; only the subscriptions of protocol type `consumer` are parsed, to know
the topics (`subscriptions`).
"""
