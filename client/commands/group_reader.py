"""`odradek consume --group`: prints records as a member of a group, which commits what has been written."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.client.commands.failures import NO_ANSWER, USAGE, CommandFailed

if TYPE_CHECKING:
    from odradek.client.commands.options import Target
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.consumer.records import ConsumerRecord
    from odradek.client.topic_partition import TopicPartition

__all__ = ["print_as_member"]

WAIT_MS: Final = 500.0
"""For records, before it is looked whether the ends are reached."""
SETTLED_BY_OPTIONS: Final = ("group_id", "group.id", "topics", "auto_offset_reset", "auto.offset.reset")


async def print_as_member(
    target: "Target",
    topic: str,
    group_id: str,
    begins: str | None,
    given: Mapping[str, object],
    write: Callable[[bytes], Awaitable[None]],
    text: "Callable[[ConsumerRecord], bytes]",
    count_max: int | None,
    *,
    follow: bool,
) -> None:
    """Writes records of the partitions that the group gives this member, from where the group has committed.

    `begins`: earliest or latest, for a group without offsets. It ends behind the records that were there when it got
    the partitions, unless it is to `follow`. Raises CommandFailed, ClientError.
    """
    from odradek.client.consumer.config import ConsumerConfig
    from odradek.client.consumer.consumer import Consumer

    if begins is None:
        raise CommandFailed("With --group, --from is earliest or latest: the group's offsets say the rest.", USAGE)
    if twice := [name for name in SETTLED_BY_OPTIONS if name in given]:
        raise CommandFailed(f"{twice[0]} is set by the options of this command, and by --set.", USAGE)
    settings = {**given, "group_id": group_id, "topics": topic, "auto_offset_reset": begins}
    async with Consumer(config=target.config(ConsumerConfig, settings)) as consumer:
        left = count_max
        ends: dict[TopicPartition, int] = {}
        idle_ms = 0.0
        while left is None or left > 0:
            batch = await consumer.get_batch(10_000 if left is None else min(left, 10_000), WAIT_MS)
            if batch:
                await write(b"".join(map(text, batch.records)))
                left = None if left is None else left - len(batch)
                idle_ms = 0.0
                if left == 0:
                    await consumer.commit(batch)
                continue
            if follow:
                continue
            if await _is_at_the_ends(consumer, ends):
                return
            idle_ms += WAIT_MS
            if idle_ms >= target.timeout_ms:
                raise CommandFailed(_nothing(consumer.assignment(), target.timeout_ms), NO_ANSWER)


async def _is_at_the_ends(consumer: "Consumer", ends: "dict[TopicPartition, int]") -> bool:
    """Whether all that is assigned has been read up to where it ended when it was first seen."""
    partitions = consumer.assignment()
    if news := [partition for partition in partitions if partition not in ends]:
        ends |= await consumer.end_offsets(news)
    for partition in partitions:
        if await consumer.position(partition) < ends[partition]:
            return False
    return bool(partitions)


def _nothing(partitions: "Sequence[TopicPartition] | frozenset[TopicPartition]", timeout_ms: int) -> str:
    why = "there should be more." if partitions else "the group gave this member no partition."
    return f"No records came for {timeout_ms / 1000:g} s, and {why}"
