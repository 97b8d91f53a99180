"""Who leads which partition.

A broker alone leads every partition of whose in-sync set it is a member, and takes a new leader epoch at each start,
before the first append: a record's epoch then says under which run of the leader it was written (KIP-101), and clients
that know an older epoch learn that something happened.
"""

from broker.cluster.keys import PARTITIONS_PREFIX, decode_partition, parse_partition
from broker.cluster.store import OPERATIONS_MAX, MetadataStore, Txn


async def lead_again(store: MetadataStore, node_id: int) -> int:
    """Stores leadership at a new epoch for every partition that `node_id` is in sync for; returns how many.

    In chunks, each conditional on what was read. Raises what the store raises.
    """
    snapshot = await store.read(PARTITIONS_PREFIX)
    expect: dict[str, int] = {}
    put: dict[str, bytes] = {}
    led = 0
    for key, entry in snapshot.entries.items():
        topic, index = parse_partition(key.removeprefix(PARTITIONS_PREFIX))
        state = decode_partition(entry.value, topic, index)
        if node_id not in state.isr:
            continue
        expect[key] = entry.revision
        put[key] = state.with_leader(node_id).encode()
        led += 1
        if len(put) == OPERATIONS_MAX:
            await store.commit(Txn(expect=expect, put=put))
            expect, put = {}, {}
    if put:
        await store.commit(Txn(expect=expect, put=put))
    return led
