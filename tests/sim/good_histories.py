"""Histories that look suspicious, and are what a cluster may leave behind: the checker has nothing to say of them."""

from collections.abc import Callable

from odradek.testing.sim.checking.expectations import Rules, TopicRules
from tests.sim.stories import COMPACTED, SYNCED, UNCLEAN, Story

GOOD: dict[str, Callable[[], Story]] = {
    "nothing": Story,
    "written and read": lambda: Story().wrote(1, 2, 3).read_to((0, 1), (1, 2), (2, 3)),
    "a send that timed out comes later": lambda: (
        Story().sent(1).failed(1, is_definite=False).sent(2).acked(2, 1).polled(0, (0, 1), (1, 2))
    ),
    "a send without an answer is there, and one is not": lambda: Story().sent(1).sent(2, producer="q").read_to((0, 2)),
    "a send that timed out never comes": lambda: Story().sent(1).failed(1, is_definite=False).wrote(2).read_to((0, 2)),
    "read before it is acknowledged": lambda: Story().sent(1).polled(0, (0, 1)).acked(1, 0),
    "a reader goes back after it was placed anew": lambda: (
        Story().wrote(1, 2).polled(0, (0, 1), (1, 2)).placed(0).polled(0, (0, 1))
    ),
    "a reader begins in the middle": lambda: Story().wrote(1, 2, 3).placed(1).polled(1, (1, 2)),
    "a client's second reader begins again": lambda: (
        Story().wrote(1).polled(0, (0, 1), client="r").polled(0, (0, 1), client="s")
    ),
    "gaps of control records": lambda: Story().sent(1, 2).acked(1, 0).acked(2, 3).read_to((0, 1), (3, 2)),
    "gaps that compaction left": lambda: (
        Story(COMPACTED)
        .wrote(1, 2, 3, key=1)
        .polled(0, (0, 1), (1, 2), (2, 3))
        .repaired()
        .placed(0, client="s")
        .polled(0, (2, 3), client="s")
        .end()
    ),
    "compaction, for a record that nobody ever saw": lambda: (
        Story(COMPACTED)
        .wrote(1, key=1)
        .sent(2, key=1)
        .failed(2, is_definite=False)
        .wrote(3, first_offset=2, key=3)
        .polled(0, (2, 3))
        .wrote(4, first_offset=3, key=1)
        .polled(3, (3, 4))
        .end()
    ),
    "compaction, of a record that was appended twice": lambda: (
        Story(COMPACTED)
        .sent(1, key=1, is_idempotent=False)
        .wrote(2, first_offset=1, key=2)
        .polled(0, (0, 1))
        .acked(1, 2)
        .polled(0, (1, 2), (2, 1), client="s")
        .end()
    ),
    "deleted before somebody came": lambda: (
        Story().wrote(1, 2, 3).deleted(2).polled(0, client="r").placed(2, "out of range").polled(2, (2, 3)).end()
    ),
    "deleted, and read before": lambda: (
        Story().wrote(1, 2).polled(0, (0, 1), (1, 2)).deleted(1).placed(1, client="s").polled(1, (1, 2), client="s")
    ),
    "acknowledged without an offset, and read": lambda: Story().sent(1).acked(1, -1).read_to((0, 1)),
    "acks=1, at an offset of a leader that is none any more": lambda: (
        Story().sent(1, producer="q").acked(1, 5).sent(2, acks=1).acked(2, 3)
    ),
    "acks=1, lost with its leader": lambda: (
        Story()
        .stored(1, (1, 2), 1)
        .wrote(1, acks=1)
        .happened("process crash", "broker-1")
        .stored(2, (2,), 2)
        .wrote(2)
        .read_to((0, 2))
    ),
    "acks=1, acknowledged by a leader that does not know yet that it is none any more": lambda: (
        Story()
        .stored(1, (1, 2), 1)
        .stored(2, (2,), 2)
        .sent(1, acks=1, producer="q")
        .wrote(2)
        .acked(1, 0)
        .read_to((0, 2))
    ),
    "acks=1, lost when its leader was restarted": lambda: (
        Story().stored(1, (1,), 1).wrote(1, acks=1).stored(1, (1,), 2).wrote(2).read_to((0, 2))
    ),
    "acks=1, lost where only faults are known": lambda: (
        Story().wrote(1, 2, acks=1).happened("network fault", "").read_to((1, 2))
    ),
    "acks=0 has no answer and no promise": lambda: Story().sent(1, acks=0).acked(1, -1).wrote(2).read_to((0, 2)),
    "a repeated request without idempotence": lambda: (
        Story().sent(1, is_idempotent=False).acked(1, 1).read_to((0, 1), (1, 1))
    ),
    "without idempotence, in another order": lambda: (
        Story().sent(1, 2, is_idempotent=False).acked(2, 0).acked(1, 1).read_to((0, 2), (1, 1))
    ),
    "two producers at the same time": lambda: (
        Story().sent(1).sent(2, producer="q").acked(2, 0).acked(1, 1).read_to((0, 2), (1, 1))
    ),
    "the last reader begins late": lambda: (
        Story()
        .wrote(1, 2)
        .polled(0, (0, 1), (1, 2))
        .repaired()
        .placed(1, client="s")
        .polled(1, (1, 2), client="s")
        .end()
    ),
    "the last reader does not come to the end": lambda: (
        Story().wrote(1).polled(0, (0, 1)).repaired().placed(0, client="s")
    ),
    "read, deleted, and not read again": lambda: (
        Story()
        .wrote(1, 2)
        .polled(0, (0, 1), (1, 2))
        .deleted(1)
        .repaired()
        .placed(0, client="s")
        .placed(1, "out of range", client="s")
        .polled(1, (1, 2), client="s")
        .end()
    ),
    "somebody was placed anew before the repair": lambda: (
        Story().wrote(1, 2).polled(0, (0, 1), (1, 2)).placed(0, client="s").repaired().end()
    ),
    "nobody reads to the end": lambda: Story().wrote(1, 2).polled(0, (0, 1)),
    "an empty poll in between": lambda: Story().wrote(1, 2).polled(0, (0, 1)).polled(1).read_to((1, 2), position=1),
    "an unclean election takes a record and its offset": lambda: (
        Story(UNCLEAN)
        .stored(1, (1,), 1)
        .wrote(1, 2)
        .polled(0, (0, 1), (1, 2))
        .stored(-1, (1,), 2)
        .unclean(2, 3)
        .stored(2, (2,), 3)
        .placed(1, "out of range")
        .wrote(3, first_offset=1)
        .read_to((1, 3), position=1)
    ),
    "read, told otherwise by a late answer with acks=1, and read again": lambda: (
        Story()
        .stored(1, (1, 2), 1)
        .sent(1, acks=1)
        .stored(2, (1, 2), 2)
        .wrote(2, producer="q")
        .polled(0, (0, 2))
        .acked(1, 0)
        .repaired()
        .placed(0, client="s")
        .polled(0, (0, 2), client="s")
        .end()
    ),
    "an unclean election after one lost its disk and another its power, all synced": lambda: (
        Story(SYNCED)
        .stored(1, (1, 2), 1)
        .happened("power failure", "broker-2")
        .happened("disk lost", "broker-1")
        .stored(-1, (), 2)
        .unclean(2, 3)
        .stored(2, (2,), 3)
        .wrote(1)
        .read_to((0, 1))
    ),
    "an unclean election, and a producer that repeats": lambda: (
        Story(UNCLEAN)
        .sent(1, 2, 3)
        .polled(0, (0, 1), (1, 2), (2, 3))
        .unclean(2, 2)
        .passes(10_000)
        .sent(4, producer="q")
        .polled(0, (0, 1), (1, 4), (2, 3), client="s")
    ),
    "an unclean election, and the old leader still serves": lambda: (
        Story(UNCLEAN)
        .stored(1, (1,), 1)
        .wrote(1)
        .unclean(2, 2)
        .stored(2, (2,), 2)
        .passes(500)
        .polled(0, (0, 1))
        .wrote(2)
        .polled(0, (0, 2), client="s")
    ),
    "nobody may lead, and that is known": lambda: Story().stored(1, (1,), 1).wrote(1, 2).leaderless(2).read_to((0, 1)),
    "two disks lost, and somebody led all the same": lambda: (
        Story()
        .stored(1, (1, 2), 1)
        .wrote(1, 2)
        .happened("disk lost", "broker-1")
        .happened("disk lost", "broker-2")
        .leaderless(2)
        .unclean(3, 3)
        .stored(3, (3,), 3)
        .read_to((0, 1))
    ),
    "a power failure of the only broker, of which no metadata are known": lambda: (
        Story().wrote(1, 2).happened("power failure", "broker-1").wrote(3, first_offset=1).read_to((0, 1), (1, 3))
    ),
    "a second loss after the first had caught up": lambda: (
        Story()
        .stored(1, (1, 2, 3), 1)
        .wrote(1)
        .happened("power failure", "broker-1")
        .stored(2, (2, 3), 2)
        .stored(2, (1, 2, 3), 2)
        .happened("power failure", "broker-2")
        .stored(1, (1, 3), 3)
        .read_to((0, 1))
    ),
    "the only member left is elected with a warning": lambda: (
        Story(Rules(default=TopicRules(min_insync_replicas=1)))
        .stored(1, (1, 2), 1)
        .stored(1, (1,), 1)
        .wrote(1)
        .stored(-1, (1,), 2)
        .happened("power failure", "broker-2")
        .happened("power failure", "broker-1")
        .unclean(1, 3)
        .stored(1, (1,), 3)
        .end()
    ),
    "an eligible replica is elected": lambda: (
        Story().stored(1, (1,), 1, elr=(2,)).stored(-1, (), 2, elr=(1, 2)).stored(2, (2,), 3, elr=(1,))
    ),
    "high watermarks begin again with an incarnation, and with an epoch": lambda: (
        Story()
        .seen(high_watermark=9)
        .seen(incarnation=2, is_leader=False, high_watermark=5)
        .seen(incarnation=2, leader_epoch=2, high_watermark=4)
    ),
    "a follower of an uncleanly elected leader goes back within its epoch": lambda: (
        Story(UNCLEAN)
        .unclean(2, 1)
        .seen(is_leader=False, high_watermark=9)
        .seen(is_leader=False, log_end_offset=5, high_watermark=5)
    ),
    "a follower's high watermark is behind": lambda: (
        Story()
        .seen(high_watermark=9)
        .seen("broker-2", is_leader=False, in_sync=[], maximal_in_sync=[], high_watermark=5)
    ),
    "a leader that asks for another member": lambda: (
        Story().stored(1, (1, 2), 1).seen(in_sync=[1, 2], maximal_in_sync=[1, 2, 3])
    ),
    "a leader that does not know yet that it is none": lambda: (
        Story()
        .stored(1, (1, 2), 1)
        .stored(2, (2,), 2)
        .seen("broker-2", leader_epoch=2)
        .seen("broker-1", leader_epoch=1)
    ),
}
