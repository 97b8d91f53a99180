"""Reads a shard's partition into its machine, from the log start to the log end (Kafka's CoordinatorLoaderImpl).

The loop is never held for longer than a slice of `replay`, and shards are loaded one after the other: a broker that
comes to lead fifty of them at once answers everybody else meanwhile.

A transaction's records count when its marker comes, which the machine sees to. What the high watermark has not passed
is loaded like the rest; who asks about it waits until it is committed. What cannot be read ends the load, and is never
skipped: a group would go back to an older offset.
"""

import logging
from collections import Counter
from typing import Any, Final

from odradek.broker.coordinator.shard import NO_PRODUCER_ID, Shard, ShardState
from odradek.broker.disk.disk import Disk
from odradek.broker.log.markers import marker_of
from odradek.broker.replica.replay import Replayed, replay
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage

logger = logging.getLogger(__name__)

ENDED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""What `replay` raises where this broker does not lead any more."""


async def load(shard: Shard[Any], disk: Disk) -> None:
    """Returns once the shard answers requests, has ended, or has failed."""
    if shard.state is not ShardState.LOADING:
        return
    environment = shard.partition.host.environment
    begun_s, machine = environment.precise_s(), shard.machine
    unknown: Counter[int] = Counter()
    count = 0
    try:
        async for replayed in replay(shard.partition, shard.leader_epoch, disk):
            if shard.state is not ShardState.LOADING or shard.machine is not machine:
                return
            count += len(replayed.keys)
            _take(shard, replayed, unknown)
    except (KafkaError, MalformedMessage) as error:
        if isinstance(error, KafkaError) and error.code in ENDED:
            return  # the shard is told, or has been
        _fail(shard, str(error))
        return
    except Exception as error:
        logger.exception("%s: the load failed", shard.name)
        _fail(shard, f"{type(error).__name__}: {error}")
        return
    if unknown:
        kinds = ", ".join(f"type {kind} ({count} records)" for kind, count in sorted(unknown.items()))
        logger.warning("%s: kept, and not understood by this release: %s", shard.name, kinds)
    if shard.state is ShardState.LOADING:
        shard.loaded()
        shard.load_s = environment.precise_s() - begun_s
        level = logging.INFO if count else logging.DEBUG
        logger.log(level, "%s: loaded %d records in %.3f s", shard.name, count, shard.load_s)


def _take(shard: Shard[Any], replayed: Replayed, unknown: Counter[int]) -> None:
    header, machine = replayed.header, shard.machine
    high_watermark = shard.partition.high_watermark.value
    if header.is_control:
        for offset, key, value in zip(replayed.offsets, replayed.keys, replayed.values, strict=True):
            if (marker := marker_of(key, value, header.base_offset)) is not None:
                for entity_id in machine.replay_marker(header.producer_id, is_commit=not marker.is_abort):
                    if offset >= high_watermark:
                        shard.commits.loaded(entity_id, offset)
        return
    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
    for offset, key, value in zip(replayed.offsets, replayed.keys, replayed.values, strict=True):
        if key is None:
            continue  # Kafka's loader skips it, too: nobody writes any
        entity_id = machine.replay(key, value, producer_id)
        if entity_id is None:
            unknown[int.from_bytes(key[:2], "big", signed=True)] += 1
        elif offset >= high_watermark:
            shard.commits.loaded(entity_id, offset)


def _fail(shard: Shard[Any], why: str) -> None:
    logger.error(
        "%s cannot be loaded, and what it coordinates has no coordinator: %s. Have another replica lead it, or restore "
        "its directory from a backup; nothing is skipped, for groups would go back to older offsets",
        *(shard.name, why),
    )
    shard.failed(f"{shard.name} cannot be loaded: {why}; the broker's log says what to do")
