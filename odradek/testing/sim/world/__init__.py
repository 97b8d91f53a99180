"""The simulated world: time, chance, machines, processes, disks, networks and a metadata store, and one hash of all
that happens.

It knows nothing of brokers and topics, but that one store keeps metadata.
"""
