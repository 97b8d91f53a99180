"""The group coordinator's state machine: classic groups, consumer groups (KIP-848), their offsets. Pure.

`machine` is what a shard of `__consumer_offsets` runs (broker.coordinator); a group is a `classic` or a `consumer` one.
What the records say is declared in `odradek.protocol.stored`.
"""
