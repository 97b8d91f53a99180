"""Who is looked at for the next request, and who waits, as partitions come, go and fail."""

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.replica.quota import ReplicationQuota
from odradek.broker.replication.followed_set import FollowedSet
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.log.logs import open_log
from tests.broker.replication.replicas_world import FollowingReplica

BACKOFF_MS = 1000.0
ERROR = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)


def followed(*indexes: int) -> tuple[FollowedSet, list[FollowingReplica]]:
    replicas = [FollowingReplica(open_log(MemoryDisk()), 3, index) for index in indexes]
    one = FollowedSet(ReplicationQuota(1 << 40, 0.0))
    for replica in replicas:
        assert one.add(replica, BACKOFF_MS)
    return one, replicas


def key(replica: FollowingReplica) -> tuple[bytes, int]:
    return replica.topic_id, replica.index


def fail(one: FollowedSet, replica: FollowingReplica) -> None:
    following = one.get(key(replica))
    assert following is not None
    one.failed(following, ERROR, 0.0)


def test_each_is_looked_at_once_and_then_when_something_has_changed() -> None:
    one, (first, second) = followed(0, 1)
    assert list(one.positions(0.0)) == [key(first), key(second)]
    assert one.positions(0.0) == {}
    one.touch(key(second))
    assert list(one.positions(0.0)) == [key(second)]
    one.remove(key(first))
    assert one.positions(0.0) == {key(first): None}
    one.touch_all()
    assert list(one.positions(0.0)) == [key(second)]


def test_whoever_waits_is_not_fetched_before_its_time() -> None:
    one, (first, second) = followed(0, 1)
    fail(one, first)
    positions = one.positions(0.0)
    assert positions[key(first)] is None
    assert positions[key(second)] is not None
    assert one.next_deadline_ms() == BACKOFF_MS
    one.release(BACKOFF_MS - 1)
    assert one.positions(0.0) == {}
    one.release(BACKOFF_MS)
    assert one.next_deadline_ms() is None
    assert list(one.positions(0.0).values()) != [None]


def test_who_begins_anew_or_is_removed_waits_no_more() -> None:
    one, (first, second) = followed(0, 1)
    fail(one, first)
    fail(one, second)
    first.leader_epoch += 1
    assert one.add(first, BACKOFF_MS)
    assert not one.add(first, BACKOFF_MS)
    one.remove(key(second))
    assert one.next_deadline_ms() is None
    one.release(BACKOFF_MS)
    assert one.positions(0.0)[key(first)] is not None


def test_an_error_of_a_former_epoch_is_no_matter() -> None:
    one, (replica,) = followed(0)
    former = one.get(key(replica))
    assert former is not None
    replica.leader_epoch += 1
    one.add(replica, BACKOFF_MS)
    one.failed(former, ERROR, 0.0)
    assert one.next_deadline_ms() is None
