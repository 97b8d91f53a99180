"""The image: equal to what the store says after any history, sharing what did not change, exact about what did."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster import keys
from odradek.broker.cluster.image import NO_CONTROLLER, ClusterImage, Delta, compare
from odradek.broker.cluster.keys import BrokerState, MalformedMetadata, PartitionState, TopicState
from odradek.broker.cluster.state import State
from odradek.broker.cluster.store import Change, Event, Snapshot, Txn
from odradek.broker.cluster.topic_image import NO_CONFIGS, TopicImage

IDS = [bytes([number]) * 16 for number in range(1, 4)]


class Cluster:
    """A store and the image that follows it, one change at a time."""

    def __init__(self) -> None:
        self.state = State()
        self.image = ClusterImage()
        self.delta = Delta()

    def commit(self, put: dict[str, bytes] | None = None, delete: Iterable[str] = ()) -> Delta:
        prepared = self.state.prepare(Txn(put=put or {}, delete=tuple(delete)))
        if prepared is None:
            self.delta = Delta()
        else:
            self.state.apply(prepared)
            self.image, self.delta = self.image.apply(prepared.change)
        return self.delta

    def fresh(self) -> ClusterImage:
        return ClusterImage.from_snapshot(self.state.read("/"))


def topic(topic_id: bytes, count: int) -> bytes:
    return TopicState(topic_id, count).encode()


def partition(topic_id: bytes, leader: int = 1) -> bytes:
    return PartitionState(topic_id, (leader,), (leader,), leader).encode()


def whole_topic(name: str, topic_id: bytes, count: int, leader: int = 1) -> dict[str, bytes]:
    put = {keys.partition_key(name, index): partition(topic_id, leader) for index in range(count)}
    return put | {keys.topic_key(name): topic(topic_id, count)}


def visible(image: ClusterImage) -> dict[str, object]:
    """All that an image shows, revisions included, and not what it hides."""
    return {
        "revision": image.revision,
        "cluster": image.cluster_id,
        "controller": (image.controller_id, image.controller_revision),
        "topics": {
            name: (each, each.revision, [part.revision for part in each.partitions])
            for name, each in image.topics.items()
        },
        "names": dict(image.names),
        "brokers": {broker_id: (broker, broker.epoch) for broker_id, broker in image.brokers.items()},
        "broker configs": dict(image.broker_configs),
        "group configs": dict(image.group_configs),
    }


def test_a_topic_with_all_it_has() -> None:
    cluster = Cluster()
    delta = cluster.commit(whole_topic("t", IDS[0], 2) | {keys.topic_config_key("t"): keys.encode_configs({"a": "1"})})
    image = cluster.image.topics["t"]
    assert (image.topic_id, image.replication_factor, image.configs) == (IDS[0], 1, {"a": "1"})
    assert [part.leader for part in image.partitions] == [1, 1]
    assert delta == Delta(created=(image,))
    assert cluster.image.topic_by_id(IDS[0]) is image
    assert cluster.image.topic_by_id(IDS[1]) is None
    assert cluster.image.partition("t", 1) is image.partitions[1]
    assert [cluster.image.partition(*where) for where in (("t", 2), ("t", -1), ("u", 0))] == [None] * 3
    assert cluster.image.topic_configs("t") is image.configs
    assert cluster.image.topic_configs("u") is NO_CONFIGS
    assert cluster.image.partition_count == 2


def test_partitions_are_hidden_until_their_topic_appears() -> None:
    cluster = Cluster()
    for index in range(3):
        assert cluster.commit({keys.partition_key("t", index): partition(IDS[0])}) == Delta()
    assert cluster.image.topics == {}
    assert len(cluster.commit({keys.topic_key("t"): topic(IDS[0], 3)}).created) == 1
    cluster.commit({keys.partition_key("t", 3): partition(IDS[0])})
    assert cluster.image.partition("t", 3) is None
    delta = cluster.commit({keys.topic_key("t"): topic(IDS[0], 4)})
    assert [len(each.partitions) for each in delta.changed] == [4]
    assert cluster.image.partition("t", 3) is not None


def test_leftovers_are_never_taken_for_a_new_topic() -> None:
    cluster = Cluster()
    cluster.commit(whole_topic("t", IDS[0], 3, leader=7))
    old = cluster.image.topics["t"]
    assert cluster.commit(delete=[keys.topic_key("t")]) == Delta(deleted=(old,))
    cluster.commit({keys.partition_key("t", 0): partition(IDS[1], leader=8)})
    cluster.commit({keys.topic_key("t"): topic(IDS[1], 1)})
    assert [part.leader for part in cluster.image.topics["t"].partitions] == [8]
    cluster.commit({keys.topic_key("t"): topic(IDS[1], 2), keys.partition_key("t", 1): partition(IDS[1], leader=9)})
    assert [part.leader for part in cluster.image.topics["t"].partitions] == [8, 9]
    assert visible(cluster.image) == visible(cluster.fresh())
    cluster.commit(delete=[keys.partition_key("t", 2)])
    assert visible(cluster.image) == visible(cluster.fresh())


def test_a_topic_replaced_in_one_change_has_vanished_and_another_is_created() -> None:
    """Nobody has deleted it: its key was never gone."""
    cluster = Cluster()
    cluster.commit(whole_topic("t", IDS[0], 2))
    old = cluster.image.topics["t"]
    delta = cluster.commit(whole_topic("t", IDS[1], 1), delete=[keys.partition_key("t", 1)])
    assert delta == Delta(created=(cluster.image.topics["t"],), vanished=(old,))
    assert cluster.image.names == {IDS[1]: "t"}


@pytest.mark.parametrize("missing", [0, 1])
def test_a_topic_without_all_its_partitions_is_refused(missing: int) -> None:
    put = whole_topic("t", IDS[0], 2)
    del put[keys.partition_key("t", missing)]
    cluster = Cluster()
    with pytest.raises(MalformedMetadata, match=f"topic t has 2 partitions, but /partitions/t/{missing} is missing"):
        cluster.commit(put)
    put[keys.partition_key("t", missing)] = partition(IDS[1])
    with pytest.raises(MalformedMetadata, match="is missing or of another topic"):
        ClusterImage().apply(Change(1, tuple(Event(key, value) for key, value in put.items())))
    with pytest.raises(MalformedMetadata):
        cluster.fresh()


def test_a_deleted_partition_of_a_living_topic_is_refused() -> None:
    cluster = Cluster()
    cluster.commit(whole_topic("t", IDS[0], 2))
    with pytest.raises(MalformedMetadata, match="/partitions/t/1 is missing"):
        cluster.commit(delete=[keys.partition_key("t", 1)])


def test_a_newer_format_is_refused() -> None:
    value = topic(IDS[0], 1).replace(b'"v":1', b'"v":2')
    with pytest.raises(MalformedMetadata, match="newer Odradek"):
        ClusterImage().apply(Change(1, (Event(keys.topic_key("t"), value),)))


def test_what_did_not_change_is_shared() -> None:
    cluster = Cluster()
    for name in ("t", "u"):
        config = {keys.topic_config_key(name): keys.encode_configs({"a": "1"})}
        cluster.commit(whole_topic(name, IDS["tu".index(name)], 3) | config)
    before = cluster.image
    delta = cluster.commit({keys.partition_key("t", 1): partition(IDS[0], leader=2)})
    after = cluster.image
    assert delta.changed == (after.topics["t"],)
    assert after.topics["u"] is before.topics["u"]
    assert after.topics["t"].configs is before.topics["t"].configs
    assert after.topics["t"].partitions[0] is before.topics["t"].partitions[0]
    assert [part.leader for part in after.topics["t"].partitions] == [1, 2, 1]
    assert [part.leader for part in before.topics["t"].partitions] == [1, 1, 1], "an image never changes"
    assert after.names is before.names
    # A write that changes nothing moves the revision for the next conditional write, and is no change to anybody.
    assert cluster.commit({keys.partition_key("t", 1): partition(IDS[0], leader=2)}) == Delta()
    state = cluster.image.partition("t", 1)
    assert state is not None
    assert state.revision == cluster.image.revision


def test_brokers_controller_and_configuration() -> None:
    cluster = Cluster()
    broker = BrokerState(1, {"PLAINTEXT": ("host", 1)})
    cluster.commit({keys.CLUSTER_KEY: keys.encode_cluster("abc"), "/foreign": b"\xff"})
    assert (cluster.image.cluster_id, cluster.image.controller_id) == ("abc", NO_CONTROLLER)
    assert cluster.commit({keys.broker_key(1): broker.encode()}) == Delta(brokers=(1,))
    assert cluster.image.brokers[1].epoch == 2
    delta = cluster.commit({keys.CONTROLLER_KEY: keys.encode_controller(1)})
    assert delta == Delta(is_controller_changed=True)
    assert (cluster.image.controller_id, cluster.image.controller_revision) == (1, 3)
    delta = cluster.commit(
        {
            keys.broker_config_key(None): keys.encode_configs({"a": "1"}),
            keys.broker_config_key(1): keys.encode_configs({"b": "2"}),
        }
    )
    assert delta == Delta(broker_configs=("default", "1"))
    assert cluster.image.configs_of_broker(None) == {"a": "1"}
    assert cluster.image.configs_of_broker(1) == {"b": "2"}
    assert cluster.image.configs_of_broker(2) == {}
    assert visible(cluster.image) == visible(cluster.fresh())
    cluster.commit(delete=[keys.broker_key(1), keys.CONTROLLER_KEY, keys.broker_config_key(1), keys.CLUSTER_KEY])
    assert (cluster.image.brokers, cluster.image.controller_id, cluster.image.cluster_id) == ({}, NO_CONTROLLER, None)
    assert cluster.image.controller_revision == 0
    assert list(cluster.image.broker_configs) == ["default"]


def test_options_of_a_group_are_there_while_any_is_set() -> None:
    cluster = Cluster()
    before = cluster.image.group_configs
    key = keys.group_config_key("a/b")
    assert cluster.commit({key: keys.encode_configs({"a": "1"})}) == Delta()
    assert (before, cluster.image.configs_of_group("a/b"), cluster.image.configs_of_group("a")) == ({}, {"a": "1"}, {})
    assert visible(cluster.image) == visible(cluster.fresh())
    cluster.commit(delete=[key])
    assert cluster.image.group_configs == {}


def test_images_read_apart_are_compared() -> None:
    cluster = Cluster()
    cluster.commit(whole_topic("gone", IDS[0], 1) | whole_topic("kept", IDS[1], 1))
    cluster.commit({keys.broker_key(1): BrokerState(1, {}).encode(), keys.broker_key(2): BrokerState(2, {}).encode()})
    before = cluster.fresh()
    assert compare(before, before) == Delta()
    cluster.commit(delete=[keys.topic_key("gone"), keys.partition_key("gone", 0)])
    cluster.commit(whole_topic("new", IDS[2], 1))
    cluster.commit({keys.partition_key("kept", 0): partition(IDS[1], leader=2)})
    cluster.commit({keys.broker_key(2): BrokerState(2, {}).encode(), keys.CONTROLLER_KEY: keys.encode_controller(2)})
    cluster.commit({keys.broker_config_key(3): keys.encode_configs({"a": "1"})})
    after = cluster.fresh()
    assert compare(before, after) == Delta(
        created=(after.topics["new"],),
        vanished=(before.topics["gone"],),
        changed=(after.topics["kept"],),
        brokers=(2,),
        broker_configs=("3",),
        is_controller_changed=True,
    )


# A history: each step creates, enlarges, deletes or reconfigures a topic, elects a leader, or leaves leftovers.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "grow", "delete", "config", "lead", "leftover", "sweep", "broker"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
        st.integers(1, 5),
    ),
    max_size=25,
)


def perform(cluster: Cluster, step: str, name: str, index: int, number: int, topic_id: bytes) -> Delta:
    present = cluster.image.topics.get(name)
    key = keys.partition_key(name, index)
    match step:
        case "create" if present is None:
            return cluster.commit(whole_topic(name, topic_id, index + 1))
        case "grow" if present is not None:
            first = len(present.partitions)
            put = {keys.partition_key(name, first + each): partition(present.topic_id) for each in range(number)}
            return cluster.commit(put | {keys.topic_key(name): topic(present.topic_id, first + number)})
        case "delete" if present is not None:
            doomed = [keys.partition_key(name, each) for each in range(index)]  # the others are left behind
            return cluster.commit(delete=[keys.topic_key(name), keys.topic_config_key(name), *doomed])
        case "config" if present is not None:
            return cluster.commit({keys.topic_config_key(name): keys.encode_configs({"n": str(number)})})
        case "lead" if present is not None and index < len(present.partitions):
            return cluster.commit({key: partition(present.topic_id, leader=number)})
        case "leftover" if present is None:
            return cluster.commit({key: partition(topic_id)})
        case "sweep" if present is None:
            return cluster.commit(delete=tuple(cluster.state.read(keys.partitions_prefix(name)).entries))
        case "broker":
            return cluster.commit({keys.broker_key(number): BrokerState(number, {}).encode()})
        case _:
            return cluster.commit()


@given(STEPS)
def test_following_changes_gives_what_reading_everything_gives(steps: list[tuple[str, str, int, int]]) -> None:
    cluster = Cluster()
    for number, step in enumerate(steps):
        before = cluster.image
        delta = perform(cluster, *step, topic_id=number.to_bytes(16, "big"))
        assert visible(cluster.image) == visible(cluster.fresh())
        compared = compare(before, cluster.image)
        assert not compared.deleted
        assert delta == replace(compared, deleted=compared.vanished, vanished=())


def test_the_empty_store_is_the_empty_image() -> None:
    assert ClusterImage.from_snapshot(Snapshot(0, {})) == ClusterImage()
    assert TopicImage("t", IDS[0], ()).configs == {}
