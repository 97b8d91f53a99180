"""Producer ids: never handed out twice, by no broker, over no restart (KIP-98, Kafka's `ProducerIdManager`).

Ids come in blocks of `BLOCK_SIZE`. A block is taken by moving the counter in the metadata store with a conditional
write, and its ids are given out only after the store has answered; a block that was begun before a crash is never
finished.
"""

import asyncio

from odradek.broker.cluster.keys import PRODUCER_IDS_KEY, decode_producer_ids, encode_producer_ids
from odradek.broker.cluster.store import Conflict, MetadataStore, Txn

BLOCK_SIZE = 1000


class ProducerIds:
    """Hands out producer ids from this broker's block, and takes the next block when it is used up."""

    __slots__ = ("_end", "_next", "_refilling", "_store")

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._next = 0
        self._end = 0
        self._refilling = asyncio.Lock()

    async def allocate(self) -> int:
        """The next producer id. Raises what the store's commit raises."""
        while self._next >= self._end:
            async with self._refilling:
                if self._next >= self._end:
                    self._next, self._end = await self._take_block()
        producer_id = self._next
        self._next += 1
        return producer_id

    async def _take_block(self) -> tuple[int, int]:
        while True:
            snapshot = await self._store.read(PRODUCER_IDS_KEY)
            entry = snapshot.entries.get(PRODUCER_IDS_KEY)
            first = 0 if entry is None else decode_producer_ids(entry.value)
            transaction = Txn(
                expect={PRODUCER_IDS_KEY: 0 if entry is None else entry.revision},
                put={PRODUCER_IDS_KEY: encode_producer_ids(first + BLOCK_SIZE)},
            )
            try:
                await self._store.commit(transaction)
            except Conflict:
                continue  # another broker took this block; read again and take the next one
            return first, first + BLOCK_SIZE
