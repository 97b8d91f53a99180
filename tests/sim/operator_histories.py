"""What operators were told, and what came of it: histories that break such a promise, and those that only look so."""

from collections.abc import Callable

from odradek.testing.sim.checking.expectations import Rules
from odradek.testing.sim.checking.finding import Anomaly
from tests.sim.stories import KEEPING, UNCLEAN, Story

A = Anomaly
ALONE = Rules(seen_within_ms=1_000)
NEXT = "t#2"
"""The topic that was made anew."""
FEW = "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered."


def deleted() -> Story:
    """Records before 5 are deleted, by a leader in epoch 1."""
    return Story().created().stored(1, (1, 2, 3), 1).asked("delete records", 5).done(5)


def made_anew() -> Story:
    """Three records were acknowledged in the topic before."""
    return Story().created().wrote(1, 2, 3).asked("delete topic").gone().done().created(topic=NEXT)


BAD_OPERATIONS: dict[str, tuple[Callable[[], Story], set[Anomaly]]] = {
    "the next leader has what was deleted": (
        lambda: deleted().stored(2, (2, 3), 2).seen("broker-2", leader_epoch=2, log_start_offset=0),
        {A.DELETED_IS_BACK},
    ),
    "what was deleted is read in the end": (
        lambda: deleted().repaired().placed(3, client="final").end(),
        {A.DELETED_IS_BACK},
    ),
    "the leader itself has it again, after a restart": (
        lambda: deleted().stored(1, (1, 2, 3), 2).seen(incarnation=2, leader_epoch=2, log_start_offset=4),
        {A.DELETED_IS_BACK},
    ),
    "an unclean election, before they were deleted": (
        lambda: (
            Story(UNCLEAN)
            .stored(1, (1,), 1)
            .unclean(2, 2)
            .stored(2, (2,), 2)
            .asked("delete records", 5)
            .done(5)
            .stored(2, (2, 3), 2)
            .stored(3, (2, 3), 3)
            .seen("broker-3", leader_epoch=3, log_start_offset=0)
        ),
        {A.DELETED_IS_BACK},
    ),
    "a log begins behind records that nobody deleted": (
        lambda: Story(KEEPING).seen(log_start_offset=3),
        {A.START_UNCALLED},
    ),
    "a log begins behind records that nobody deleted, after one loss of power of three": (
        lambda: (
            Story(KEEPING)
            .stored(1, (1, 2, 3), 1)
            .happened("power failure", "broker-2")
            .stored(1, (1, 3), 1)
            .seen("broker-2", is_leader=False, log_start_offset=3)
        ),
        {A.START_UNCALLED},
    ),
    "a log begins behind those that were deleted": (
        lambda: Story(KEEPING).asked("delete records", 5).done(5).seen(log_start_offset=6),
        {A.START_UNCALLED},
    ),
    "a deleted topic stays": (
        lambda: Story().created().asked("delete topic").done(),
        {A.CHANGE_UNDONE},
    ),
    "a deleted topic goes long after the answer": (
        lambda: Story().created().asked("delete topic").done().passes(1_000).gone(),
        {A.CHANGE_UNDONE},
    ),
    "a deleted topic is back, by its id": (
        lambda: Story().created().asked("delete topic").gone().done().created(),
        {A.CHANGE_UNDONE},
    ),
    "a created topic is not there": (
        lambda: Story().nodes(1, 2, 3).created(topic="u").asked("create topic", 1, 3).done(),
        {A.CHANGE_UNDONE},
    ),
    "partitions that were added are gone": (
        lambda: Story().created().asked("add partitions", 3).created(3).done().created(2),
        {A.CHANGE_UNDONE},
    ),
    "partitions were never added": (
        lambda: Story().created().asked("add partitions", 3).done(),
        {A.CHANGE_UNDONE},
    ),
    "an option was never set": (
        lambda: Story().created().options({}).asked("alter options", options={"a": "1"}).done(),
        {A.CHANGE_UNDONE},
    ),
    "an option of all brokers is lost": (
        lambda: (
            Story()
            .created()
            .asked("alter options", topic="", options={"a": "1"})
            .options({"a": "1"}, topic="")
            .done(topic="")
            .options({}, topic="")
        ),
        {A.CHANGE_UNDONE},
    ),
    "a reassignment that was begun is not stored": (
        lambda: Story().created().stored(1, (1, 2, 3), 1).asked("reassign", 3, 2).done(),
        {A.CHANGE_UNDONE},
    ),
    "a broker that was forgotten is registered": (
        lambda: Story().created().nodes(1, 2, 3).asked("unregister", 3, topic="").done(topic=""),
        {A.CHANGE_UNDONE},
    ),
    "the new topic has the old one's records": (
        lambda: made_anew().polled(0, (0, 1), (1, 2), topic=NEXT),
        {A.OF_ANOTHER_TOPIC},
    ),
    "one record of the old topic": (
        lambda: made_anew().polled(2, (2, 3), topic=NEXT),
        {A.OF_ANOTHER_TOPIC},
    ),
    "what was acknowledged in the new topic is lost": (
        lambda: (
            made_anew()
            .sent(4)
            .acked(4, 0, topic=NEXT)
            .sent(5)
            .acked(5, 1, topic=NEXT)
            .polled(0, (1, 5), topic=NEXT)
            .end()
        ),
        {A.LOST_WRITE, A.SKIPPED_POLL},
    ),
    "a replica that is in sync goes, and its successor is not there": (
        lambda: Story().stored(1, (1, 2), 1, removing=(1,)).stored(2, (2,), 2, replicas=(2, 3)),
        {A.REASSIGNED_TOO_EARLY},
    ),
    "a set shrinks at once, to one that is in sync of two": (
        lambda: Story().stored(1, (1, 2), 1).stored(1, (1,), 2, replicas=(1, 3)),
        {A.REASSIGNED_TOO_EARLY},
    ),
    "a cancellation takes one of two that are in sync": (
        lambda: Story().stored(1, (1, 4), 1, replicas=(1, 2, 4), adding=(4,)).stored(1, (1,), 2, replicas=(1, 2)),
        {A.REASSIGNED_TOO_EARLY},
    ),
    "fewer replicas than were asked for": (
        lambda: (
            Story().nodes(1, 2, 3).asked("create topic", 1, 3).created().stored(1, (1, 2), 0, replicas=(1, 2)).done()
        ),
        {A.TOO_FEW_REPLICAS},
    ),
    "the second partition has fewer": (
        lambda: (
            Story()
            .nodes(1, 2, 3)
            .asked("create topic", 1, 3)
            .created()
            .stored(1, (1,), 0, replicas=(1,))
            .done()
            .stored(1, (1, 2), 0, replicas=(1, 2))
        ),
        {A.TOO_FEW_REPLICAS},
    ),
    "refused, and three are registered": (
        lambda: Story().nodes(1, 2, 3).asked("create topic", 1, 3).refused(FEW),
        {A.REFUSED_WRONGLY},
    ),
    "partitions refused": (
        lambda: Story().nodes(1, 2, 3).created().stored(1, (1, 2), 0).asked("add partitions", 2).refused(FEW),
        {A.REFUSED_WRONGLY},
    ),
}

GOOD_OPERATIONS: dict[str, Callable[[], Story]] = {
    "an option is altered, and the topic deleted before anybody looks": lambda: (
        Story(ALONE).created().options({}).asked("alter options", options={"a": "1"}).done().gone()
    ),
    "a log begins later, for a loss of power took the first of its files": lambda: (
        Story(KEEPING)
        .stored(1, (1,), 1, replicas=(1,))
        .happened("power failure", "broker-1")
        .unclean(1, 2)
        .stored(1, (1,), 2, replicas=(1,))
        .seen(leader_epoch=2, log_start_offset=3, in_sync=[1], maximal_in_sync=[1])
    ),
    "deleted, and all leaders know": lambda: (
        deleted().seen(log_start_offset=5).stored(2, (2, 3), 2).seen("broker-2", leader_epoch=2, log_start_offset=5)
    ),
    "a follower does not know yet what was deleted": lambda: (
        deleted().seen("broker-2", is_leader=False, in_sync=[], maximal_in_sync=[], log_start_offset=0)
    ),
    "a leader that was deposed does not know what was deleted": lambda: (
        Story()
        .stored(1, (1, 2, 3), 1)
        .stored(2, (2, 3), 2)
        .asked("delete records", 5)
        .done(5)
        .seen("broker-1", log_start_offset=0)
    ),
    "nobody answered, and nothing was deleted": lambda: (
        Story().stored(1, (1, 2, 3), 1).asked("delete records", 5).stored(2, (2, 3), 2).seen("broker-2", leader_epoch=2)
    ),
    "deleted, and an unclean election brings it back": lambda: (
        Story(UNCLEAN)
        .stored(1, (1,), 1)
        .asked("delete records", 5)
        .done(5)
        .unclean(2, 2)
        .stored(2, (2,), 2)
        .seen("broker-2", leader_epoch=2, log_start_offset=0)
    ),
    "somebody wanted to delete up to there, and was not answered": lambda: (
        Story(KEEPING).asked("delete records", 5).seen(log_start_offset=5)
    ),
    "all was deleted, and less was answered by the next leader": lambda: (
        Story(KEEPING).created().stored(1, (1, 2, 3), 1).asked("delete records", -1).done(8).seen(log_start_offset=9)
    ),
    "all was deleted, without an answer": lambda: (
        Story(KEEPING).asked("delete records", -1).seen(log_start_offset=9)
    ),
    "an operator has records retained no longer": lambda: (
        Story(KEEPING).options({"retention.bytes": "1"}).seen(log_start_offset=9)
    ),
    "records of a deleted topic are not missing": lambda: (
        made_anew().sent(4).acked(4, 0, topic=NEXT).polled(0, (0, 4), topic=NEXT).end()
    ),
    "a record of the old topic that its producer has sent again": lambda: (
        Story()
        .created()
        .sent(1)
        .polled(0, (0, 1))
        .gone()
        .created(topic=NEXT)
        .acked(1, 0, topic=NEXT)
        .polled(0, (0, 1), topic=NEXT)
        .end()
    ),
    "of the new topic at the old offsets": lambda: (
        made_anew().sent(4).polled(0, (0, 4), topic=NEXT)
    ),
    "a reader goes on in the new topic": lambda: (
        made_anew()
        .polled(0, (0, 1))
        .sent(4, 5)
        .placed(1, topic=NEXT)
        .polled(1, (1, 5), topic=NEXT)
        .placed(0, client="s", topic=NEXT)
        .polled(0, (0, 4), (1, 5), client="s", topic=NEXT)
    ),
    "an old position in a topic that is gone": lambda: (
        Story().created().sent(1).polled(0, (0, 1)).gone().placed(0, "out of range")
    ),
    "the topic was deleted, and nobody answered": lambda: Story().created().asked("delete topic").gone(),
    "it could not be deleted": lambda: Story().created().asked("delete topic").refused("no"),
    "partitions are added, and the topic is deleted": lambda: (
        Story().created().asked("add partitions", 3).created(3).done().gone()
    ),
    "an option that another operator changes again": lambda: (
        Story()
        .created()
        .asked("alter options", options={"a": "1"})
        .options({"a": "1"})
        .done()
        .asked("alter options", operator="p", options={"a": "2"})
        .options({"a": "2"})
    ),
    "two at once": lambda: (
        Story()
        .created()
        .asked("alter options", operator="p", options={"a": "2"})
        .asked("alter options", options={"a": "1"})
        .options({"a": "1"})
        .options({"a": "2"})
        .done()
    ),
    "an option that was so before": lambda: (
        Story().created().options({"a": "1"}).asked("alter options", options={"a": "1"}).done()
    ),
    "a reassignment to what there is": lambda: (
        Story().created().stored(1, (1, 2, 3), 1).asked("reassign", 1, 2, 3).done()
    ),
    "a broker is forgotten, and comes back": lambda: (
        Story().created().nodes(1, 2, 3).asked("unregister", 3, topic="").nodes(1, 2).done(topic="").nodes(1, 2, 3)
    ),
    "two of three stay where two have to be": lambda: (
        Story().stored(1, (1, 2, 3), 1, removing=(1,)).stored(2, (2, 3), 2, replicas=(2, 3))
    ),
    "to one replica, where two have to be in sync as a rule": lambda: (
        Story().stored(1, (1, 2, 3), 1, removing=(1, 3)).stored(2, (2,), 2, replicas=(2,))
    ),
    "too few were in sync before": lambda: (
        Story().stored(2, (2,), 1, removing=(1,)).stored(2, (2,), 2, replicas=(2, 3))
    ),
    "who went with its replica had died, and another one with it": lambda: (
        Story().stored(2, (1, 2, 3), 1, removing=(1,)).stored(2, (2,), 2, replicas=(2, 3), live=(2,))
    ),
    "what a reassignment was adding goes when it is cancelled": lambda: (
        Story()
        .stored(1, (1, 2, 4), 1, replicas=(1, 2, 3, 4), adding=(4,))
        .stored(1, (1, 2), 2, replicas=(1, 2, 3))
    ),
    "one has to be in sync, by an option that was changed": lambda: (
        Story()
        .options({"min.insync.replicas": "1"})
        .stored(1, (1, 2), 1, removing=(1,))
        .stored(2, (2,), 2, replicas=(2, 3))
    ),
    "refused, and a third broker was forgotten": lambda: (
        Story().nodes(1, 2).asked("create topic", 1, 3).refused(FEW).nodes(1, 2, 3)
    ),
    "an unclean election that an operator wants": lambda: (
        Story()
        .stored(1, (1,), 1)
        .leaderless(2)
        .asked("elect uncleanly")
        .unclean(2, 3)
        .stored(2, (2,), 3)
    ),
}  # fmt: skip
