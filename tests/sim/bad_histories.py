"""Histories that no cluster may leave behind, at least two for each anomaly: what the checker must find in them."""

from collections.abc import Callable

from odradek.testing.sim.checking.expectations import Rules, TopicRules
from odradek.testing.sim.checking.finding import Anomaly
from tests.sim.stories import COMPACTED, UNCLEAN, Story

A = Anomaly

BAD: dict[str, tuple[Callable[[], Story], set[Anomaly]]] = {
    # -- lost ---------------------------------------------------------------------------------------------------
    "a reader passed over an acknowledged record": (
        lambda: Story().wrote(1, 2, 3).polled(0, (0, 1), (2, 3)),
        {A.LOST_WRITE, A.INTERNAL_SKIPPED_POLL},
    ),
    "the one who passed over it had begun early": (
        lambda: Story().wrote(1, 2, 3, 4).polled(0, (0, 1), (1, 2), (3, 4)).polled(1, (1, 2), client="s"),
        {A.LOST_WRITE, A.INTERNAL_SKIPPED_POLL},
    ),
    "the acknowledged record was read at another offset, not at its own": (
        lambda: Story().wrote(1, 2, is_idempotent=False).polled(0, (1, 2), (2, 1)),
        {A.LOST_WRITE, A.SKIPPED_POLL},
    ),
    "acks=1, and nothing happened that could have taken it": (
        lambda: Story().wrote(1, 2, acks=1).polled(0, (1, 2)),
        {A.LOST_WRITE},
    ),
    "acks=1, long after the last change of leaders": (
        lambda: Story().stored(1, (1, 2), 1).stored(2, (2,), 2).passes(10_000).wrote(1, 2, acks=1).polled(0, (1, 2)),
        {A.LOST_WRITE},
    ),
    "acks=1 on the only replica, which kept its disk": (
        lambda: Story(Rules(default=TopicRules(has_one_replica=True)))
        .wrote(1, 2, acks=1)
        .happened("process crash", "broker-1")
        .polled(0, (1, 2)),
        {A.LOST_WRITE},
    ),
    "the loss came before an unclean election, and the record after it": (
        lambda: Story(UNCLEAN)
        .stored(1, (1, 2, 3), 1)
        .unclean(2, 2)
        .stored(2, (2,), 2)
        .passes(5_000)
        .wrote(1, 2)
        .polled(0, (1, 2)),
        {A.LOST_WRITE, A.SKIPPED_POLL},
    ),
    "one power failure of three": (
        lambda: Story()
        .stored(1, (1, 2, 3), 1)
        .wrote(1, 2)
        .happened("power failure", "broker-1")
        .stored(2, (2, 3), 2)
        .polled(0, (1, 2)),
        {A.LOST_WRITE, A.SKIPPED_POLL},
    ),
    "outside the loss model, but nobody logged an unclean election": (
        lambda: Story()
        .stored(1, (1, 2, 3), 1)
        .wrote(1, 2)
        .happened("power failure", "broker-1")
        .happened("power failure", "broker-2")
        .stored(2, (2, 3), 2)
        .polled(0, (1, 2)),
        {A.LOST_WRITE, A.SKIPPED_POLL},
    ),
    "acknowledged, and nobody finds it in the end": (
        lambda: Story().wrote(1, 2, 3).read_to((0, 1), (1, 2)),
        {A.UNSEEN},
    ),
    "read once, and gone in the end": (
        lambda: Story()
        .wrote(1, 2)
        .polled(0, (0, 1), (1, 2))
        .repaired()
        .placed(0, client="s")
        .polled(0, (0, 1), client="s")
        .end(),
        {A.UNSEEN},
    ),
    "with acks=1, but a leader has shown it": (
        lambda: Story()
        .stored(1, (1, 2), 1)
        .wrote(1, acks=1)
        .polled(0, (0, 1))
        .stored(2, (2,), 2)
        .repaired()
        .placed(0, client="s")
        .end(),
        {A.UNSEEN},
    ),
    "acknowledged without an offset, and nobody finds it": (
        lambda: Story().wrote(1).sent(2).acked(2, -1).read_to((0, 1)),
        {A.UNSEEN},
    ),
    "deleted before it, but not it": (
        lambda: Story().wrote(1, 2).deleted(1).polled(1).end(),
        {A.UNSEEN},
    ),
    "compaction took the newest of a key": (
        lambda: Story(COMPACTED).wrote(1, 2, key=1).wrote(3, first_offset=2, key=2).polled(0, (0, 1), (2, 3)),
        {A.LOST_WRITE, A.INTERNAL_SKIPPED_POLL},
    ),
    "compaction took what had been read and nothing was newer than": (
        lambda: Story(COMPACTED)
        .wrote(1, key=1)
        .wrote(2, first_offset=1, key=2)
        .polled(0, (0, 1), (1, 2))
        .repaired()
        .placed(0, client="s")
        .polled(0, (1, 2), client="s")
        .end(),
        {A.UNSEEN, A.SKIPPED_POLL},
    ),
    "compaction took it before there was a newer one": (
        lambda: Story(COMPACTED)
        .wrote(1, key=1)
        .wrote(2, first_offset=1, key=2)
        .polled(0, (1, 2))
        .wrote(3, first_offset=2, key=1)
        .polled(2, (2, 3)),
        {A.SKIPPED_POLL},
    ),
    "of two with one key, in a topic that is not compacted": (
        lambda: Story().wrote(1, 2, key=1).polled(0, (1, 2)),
        {A.LOST_WRITE, A.SKIPPED_POLL},
    ),
    # -- one offset, one value ----------------------------------------------------------------------------------
    "acknowledged there, and something else read there": (
        lambda: Story().sent(1, 2, is_idempotent=False).acked(1, 0).polled(0, (0, 2), (1, 1)),
        {A.INCONSISTENT_OFFSET, A.LOST_WRITE},
    ),
    "two readers, two values": (
        lambda: Story().sent(1).sent(2, producer="q").polled(0, (0, 1)).polled(0, (0, 2), client="s"),
        {A.INCONSISTENT_OFFSET},
    ),
    "one reader, after it was placed anew": (
        lambda: Story().sent(1).sent(2, producer="q").polled(0, (0, 1)).placed(0).polled(0, (0, 2)),
        {A.INCONSISTENT_OFFSET},
    ),
    "acks=1 replaced, and no leader changed": (
        lambda: Story().stored(1, (1, 2), 1).wrote(1, acks=1).sent(2, producer="q").polled(0, (0, 2)).sent(3),
        {A.INCONSISTENT_OFFSET, A.LOST_WRITE},
    ),
    "an unclean election, long before": (
        lambda: Story(UNCLEAN)
        .unclean(2, 2)
        .passes(10_000)
        .sent(1)
        .sent(2, producer="q")
        .polled(0, (0, 1))
        .polled(0, (0, 2), client="s"),
        {A.INCONSISTENT_OFFSET},
    ),
    "an unclean election, but the old value was there long after it": (
        lambda: Story(UNCLEAN)
        .sent(1)
        .sent(2, producer="q")
        .polled(0, (0, 1))
        .unclean(2, 2)
        .passes(10_000)
        .polled(0, (0, 1), client="s")
        .polled(0, (0, 2), client="u"),
        {A.INCONSISTENT_OFFSET},
    ),
    "the same, after another value": (
        lambda: Story(UNCLEAN)
        .sent(1)
        .sent(2, producer="q")
        .sent(3, producer="o")
        .polled(0, (0, 1))
        .unclean(2, 2)
        .polled(0, (0, 2), client="s")
        .unclean(3, 3)
        .passes(10_000)
        .polled(0, (0, 2), client="u")
        .polled(0, (0, 3), client="v"),
        {A.INCONSISTENT_OFFSET},
    ),
    # -- one value, one offset ----------------------------------------------------------------------------------
    "an idempotent producer's record twice": (
        lambda: Story().sent(1).polled(0, (0, 1), (1, 1)),
        {A.DUPLICATE},
    ),
    "acknowledged at one offset, read at another as well": (
        lambda: Story().wrote(1, 2).read_to((0, 1), (1, 2), (2, 1)),
        {A.DUPLICATE},
    ),
    "in two partitions": (
        lambda: Story().sent(1, partition=None).polled(0, (0, 1)).polled(0, (0, 1), partition=1),
        {A.DUPLICATE},
    ),
    # -- never written ------------------------------------------------------------------------------------------
    "refused before the append, and read": (
        lambda: Story().sent(1).failed(1, is_definite=True).polled(0, (0, 1)),
        {A.ABORTED_READ},
    ),
    "read, and then refused": (
        lambda: Story().sent(1).polled(0, (0, 1)).failed(1, is_definite=True),
        {A.ABORTED_READ},
    ),
    "sent by nobody": (lambda: Story().wrote(1).polled(0, (0, 1), (1, 99)), {A.PHANTOM}),
    "read before it was sent": (lambda: Story().polled(0, (0, 1)).sent(1), {A.PHANTOM, A.NON_MONOTONIC_SEND}),
    "sent to another topic": (lambda: Story().sent(1, topic="u").polled(0, (0, 1)), {A.PHANTOM}),
    "sent to another partition": (lambda: Story().sent(1, partition=3).polled(0, (0, 1)), {A.PHANTOM}),
    "acknowledged, and never sent": (lambda: Story().acked(1, 0), {A.PHANTOM}),
    "answered twice": (lambda: Story().sent(1).failed(1, is_definite=False).acked(1, 0), {A.PHANTOM}),
    # -- order of writes ----------------------------------------------------------------------------------------
    "an idempotent producer's records turned round": (
        lambda: Story().sent(1, 2).polled(0, (0, 2), (1, 1)),
        {A.WRITE_ORDER},
    ),
    "turned round in the acknowledgements": (
        lambda: Story().sent(1, 2, 3).acked(1, 0).acked(2, 2).acked(3, 1).read_to((0, 1), (1, 3), (2, 2)),
        {A.WRITE_ORDER},
    ),
    "sent after a higher offset was acknowledged": (
        lambda: Story().sent(1).acked(1, 5).sent(2, producer="q").acked(2, 3),
        {A.NON_MONOTONIC_SEND},
    ),
    "sent after a higher offset was read": (
        lambda: Story().sent(1, 2, is_idempotent=False).polled(0, (0, 1), (4, 2)).sent(3).polled(2, (3, 3), client="s"),
        {A.NON_MONOTONIC_SEND, A.INTERNAL_SKIPPED_POLL},
    ),
    # -- order of reads -----------------------------------------------------------------------------------------
    "a reader asks from before where it stood": (
        lambda: Story().sent(1, 2).polled(0, (0, 1), (1, 2)).polled(1, (1, 2)),
        {A.NON_MONOTONIC_POLL},
    ),
    "a poll begins before its position": (
        lambda: Story().sent(1, 2).polled(1, (0, 1), (1, 2)),
        {A.NON_MONOTONIC_POLL},
    ),
    "a poll goes back": (
        lambda: Story().sent(1, 2, is_idempotent=False).polled(0, (1, 2), (0, 1)),
        {A.INTERNAL_NON_MONOTONIC_POLL, A.SKIPPED_POLL},
    ),
    "a poll has a record twice": (
        lambda: Story().sent(1).polled(0, (0, 1), (0, 1)),
        {A.INTERNAL_NON_MONOTONIC_POLL},
    ),
    "a poll begins behind what another reader was given": (
        lambda: Story().sent(1, 2).polled(0, (0, 1), (1, 2)).polled(0, (1, 2), client="s"),
        {A.SKIPPED_POLL},
    ),
    "a position jumps between two polls": (
        lambda: Story().sent(1, 2, 3).polled(0, (0, 1), (1, 2), (2, 3)).polled(0, (0, 1), client="s")
        .polled(2, (2, 3), client="s"),
        {A.SKIPPED_POLL},
    ),
    "a hole within a poll": (
        lambda: Story().sent(1, 2, 3).polled(0, (0, 1), (2, 3)).polled(0, (0, 1), (1, 2), client="s"),
        {A.INTERNAL_SKIPPED_POLL},
    ),
    "a hole where something was acknowledged": (
        lambda: Story().wrote(1, 2, 3).polled(0, (0, 1), (1, 2), (2, 3)).polled(0, (0, 1), (2, 3), client="s"),
        {A.INTERNAL_SKIPPED_POLL},
    ),
    "out of range, and nothing was deleted": (
        lambda: Story().sent(1, 2).polled(0, (0, 1), (1, 2)).placed(1, "out of range"),
        {A.POSITION_LOST},
    ),
    "out of range, and deleted only later": (
        lambda: Story().sent(1, 2).polled(0, (0, 1)).placed(2, "out of range").deleted(2),
        {A.POSITION_LOST},
    ),
    # -- replicas -----------------------------------------------------------------------------------------------
    "a leader's high watermark goes back": (
        lambda: Story().seen(high_watermark=7).seen(high_watermark=6),
        {A.HIGH_WATERMARK_BACK},
    ),
    "a follower's high watermark goes back": (
        lambda: Story().seen("broker-2", is_leader=False, in_sync=[], maximal_in_sync=[], high_watermark=3)
        .seen("broker-1")
        .seen("broker-2", is_leader=False, in_sync=[], maximal_in_sync=[], high_watermark=2),
        {A.HIGH_WATERMARK_BACK},
    ),
    "a high watermark behind the log's end": (
        lambda: Story().seen(high_watermark=11),
        {A.IMPOSSIBLE_REPLICA},
    ),
    "a high watermark before the log's start": (
        lambda: Story().seen(log_start_offset=5, high_watermark=4),
        {A.IMPOSSIBLE_REPLICA},
    ),
    "a maximal in-sync set without a member": (
        lambda: Story().seen(maximal_in_sync=[1, 2]),
        {A.IMPOSSIBLE_REPLICA},
    ),
    "two brokers lead in one epoch": (
        lambda: Story().seen("broker-1").seen("broker-2"),
        {A.TWO_LEADERS},
    ),
    "a follower goes back within its epoch": (
        lambda: Story().seen(is_leader=False, high_watermark=9).seen(is_leader=False, high_watermark=5),
        {A.HIGH_WATERMARK_BACK},
    ),
    "a leader goes back within its epoch, whoever was elected before": (
        lambda: Story(UNCLEAN).unclean(1, 1).seen(high_watermark=9).seen(high_watermark=5),
        {A.HIGH_WATERMARK_BACK},
    ),
    "a leader is restarted, and leads in the same epoch": (
        lambda: Story().stored(1, (1, 2, 3), 1).seen("broker-1").seen("broker-1", incarnation=2),
        {A.TWO_LEADERS},
    ),
    "another broker leads than the store says": (
        lambda: Story().stored(1, (1, 2, 3), 1).seen("broker-2"),
        {A.TWO_LEADERS},
    ),
    "the leader changes within an epoch": (
        lambda: Story().stored(1, (1, 2), 1).stored(2, (1, 2), 1),
        {A.TWO_LEADERS},
    ),
    "a leader counts who is no replica": (
        lambda: Story().stored(1, (1, 2, 3), 1).seen(in_sync=[1, 4], maximal_in_sync=[1, 4]),
        {A.ISR_OUTSIDE_REPLICAS},
    ),
    "the stored in-sync set has who is no replica": (
        lambda: Story().stored(1, (1, 4), 1),
        {A.ISR_OUTSIDE_REPLICAS},
    ),
    "who is eligible and no replica": (
        lambda: Story().stored(1, (1,), 1, elr=(4,)),
        {A.ISR_OUTSIDE_REPLICAS},
    ),
    "who is in sync and eligible at once": (
        lambda: Story().stored(1, (1, 2), 1, elr=(2,)),
        {A.IMPOSSIBLE_REPLICA},
    ),
    "a leader that is not in sync": (lambda: Story().stored(1, (2, 3), 1), {A.IMPOSSIBLE_REPLICA}),
    "a leader epoch goes back": (
        lambda: Story().stored(1, (1, 2), 2).stored(1, (1, 2), 1),
        {A.EPOCH_BACK},
    ),
    "a partition epoch comes twice": (
        lambda: Story().stored(1, (1, 2), 2).stored(1, (1,), 2, partition_epoch=1),
        {A.EPOCH_BACK},
    ),
    "a leader is elected by the controller of before": (
        lambda: Story().stored(1, (1, 2), 1).stored(2, (2,), 2, writer=1, controller=3),
        {A.NOT_THE_CONTROLLER},
    ),
    "a leader is elected while nobody is the controller": (
        lambda: Story().stored(1, (1, 2), 1).leaderless(2).stored(2, (2,), 3, writer=2),
        {A.NOT_THE_CONTROLLER, A.UNLOGGED_ELECTION},
    ),
    "an outsider is elected, and nobody says so": (
        lambda: Story().stored(1, (1, 2), 1).stored(3, (3,), 2),
        {A.UNLOGGED_ELECTION},
    ),
    "another election was logged": (
        lambda: Story(UNCLEAN).stored(1, (1, 2), 1).unclean(3, 4).stored(3, (3,), 2),
        {A.UNLOGGED_ELECTION},
    ),
    "an outsider is elected after nobody had led": (
        lambda: Story().stored(1, (1,), 1).leaderless(2).stored(2, (2,), 3),
        {A.UNLOGGED_ELECTION},
    ),
    "an unclean election for one lost disk": (
        lambda: Story()
        .stored(1, (1, 2, 3), 1)
        .happened("disk lost", "broker-1")
        .unclean(3, 2)
        .stored(3, (3,), 2),
        {A.UNCALLED_ELECTION},
    ),
    "an unclean election before the second loss": (
        lambda: Story()
        .stored(1, (1, 2, 3), 1)
        .happened("power failure", "broker-1")
        .unclean(3, 2)
        .stored(3, (3,), 2)
        .happened("power failure", "broker-3"),
        {A.UNCALLED_ELECTION},
    ),
}  # fmt: skip
