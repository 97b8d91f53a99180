"""Membership in a consumer group, as state machines without I/O: classic and KIP-848 behind one interface."""
