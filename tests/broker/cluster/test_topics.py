"""Topics are created, enlarged and deleted whole: with a crash around any commit, and with several writers at once."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

import pytest

from odradek.broker.cluster import keys
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import CHUNK_SIZE, Change, Conflict, Lease, MetadataStore, Snapshot, Txn
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.cluster.topics import (
    add_partitions,
    create_topic,
    delete_topic,
    delete_topics,
    new_partition,
    sweep_leftovers,
    write_topic_configs,
)
from odradek.protocol.errors import ErrorCode, KafkaError

ID, OTHER_ID = b"\x01" * 16, b"\x02" * 16
SIZES = [1, CHUNK_SIZE, CHUNK_SIZE + 1, 3 * CHUNK_SIZE + 5]


class Crash(Exception):
    """The process ends here."""


class CrashingStore:
    """Lets `commits_max` commits happen; the next one crashes, before or after it was applied."""

    def __init__(self, store: MetadataStore, commits_max: int, *, applied: bool = False) -> None:
        self._store = store
        self._commits_left = commits_max
        self._applied = applied

    async def read(self, prefix: str) -> Snapshot:
        return await self._store.read(prefix)

    async def commit(self, txn: Txn) -> int:
        if self._commits_left == 0:
            if self._applied:
                await self._store.commit(txn)
            raise Crash
        self._commits_left -= 1
        return await self._store.commit(txn)

    def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        return self._store.watch(prefix, after)

    async def lease(self, ttl_ms: int) -> Lease:
        return await self._store.lease(ttl_ms)

    async def close(self) -> None:
        await self._store.close()


def partitions(count: int, topic_id: bytes = ID, writer: int = 1) -> list[PartitionState]:
    return [new_partition(topic_id, index, (writer,), lambda _: True) for index in range(count)]


async def image_of(store: MetadataStore) -> ClusterImage:
    return ClusterImage.from_snapshot(await store.read("/"))


async def topic_of(store: MetadataStore, name: str = "t") -> TopicImage:
    return (await image_of(store)).topics[name]


async def keys_of(store: MetadataStore) -> list[str]:
    return list((await store.read("/")).entries)


def whole(name: str, count: int, *, configured: bool = False) -> list[str]:
    """All keys of one topic and no other."""
    found = [keys.partition_key(name, index) for index in range(count)] + [keys.topic_key(name)]
    return sorted([*found, keys.topic_config_key(name)] if configured else found)


@pytest.mark.parametrize("count", SIZES)
async def test_a_topic_is_created_enlarged_and_deleted(count: int) -> None:
    store = MemoryStore()
    revision = await create_topic(store, "t", ID, partitions(count), {"a": "1"})
    topic = await topic_of(store)
    assert revision == topic.revision == (await store.read("/")).revision
    assert (topic.topic_id, len(topic.partitions), topic.configs) == (ID, count, {"a": "1"})
    assert await keys_of(store) == whole("t", count, configured=True)

    await add_partitions(store, topic, partitions(count, writer=2))
    topic = await topic_of(store)
    assert [part.leader for part in topic.partitions] == [1] * count + [2] * count
    assert topic.configs == {"a": "1"}
    assert await keys_of(store) == whole("t", 2 * count, configured=True)

    await delete_topic(store, topic)
    assert await keys_of(store) == []


async def test_a_small_topic_is_one_commit() -> None:
    store = MemoryStore()
    assert await create_topic(store, "t", ID, partitions(CHUNK_SIZE), {"a": "1"}) == 1
    assert await add_partitions(store, await topic_of(store), partitions(CHUNK_SIZE)) == 2
    await create_topic(store, "u", OTHER_ID, partitions(CHUNK_SIZE, OTHER_ID), {})
    assert await delete_topic(store, await topic_of(store, "u")) == 4


async def test_many_topics_are_deleted_in_few_commits() -> None:
    store = MemoryStore()
    for number in range(50):
        await create_topic(store, f"t{number}", ID, partitions(1), {"a": "1"} if number % 2 else {})
    topics = (await image_of(store)).topics.values()
    before = (await store.read("/")).revision
    await delete_topics(store, topics)
    assert await keys_of(store) == []
    assert (await store.read("/")).revision - before == 3, "of 22, 22 and 6"


async def test_topics_that_others_are_at_work_on_are_deleted_one_by_one() -> None:
    store = MemoryStore()
    for name, count in (("changed", 1), ("gone", 1), ("large", 2 * CHUNK_SIZE), ("same", 1)):
        await create_topic(store, name, ID, partitions(count), {})
    topics = list((await image_of(store)).topics.values())
    await add_partitions(store, await topic_of(store, "changed"), partitions(2))
    await delete_topic(store, await topic_of(store, "gone"))
    await delete_topics(store, topics)
    assert await keys_of(store) == []


async def test_a_name_is_given_once() -> None:
    store = MemoryStore()
    await create_topic(store, "t", ID, partitions(1), {})
    with pytest.raises(KafkaError, match="Topic 't' already exists") as caught:
        await create_topic(store, "t", OTHER_ID, partitions(500, OTHER_ID), {})
    assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert await keys_of(store) == whole("t", 1)


async def test_a_topic_that_is_gone_or_was_made_again_is_not_touched() -> None:
    store = MemoryStore()
    await create_topic(store, "t", ID, partitions(1), {})
    old = await topic_of(store)
    await delete_topic(store, old)

    async def all_refused() -> None:
        attempts: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: delete_topic(store, old),
            lambda: add_partitions(store, old, partitions(1)),
            lambda: write_topic_configs(store, old, {"a": "1"}),
        )
        before = await store.read("/")
        for attempt in attempts:
            with pytest.raises(KafkaError) as caught:
                await attempt()
            assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await store.read("/") == before

    await all_refused()
    await create_topic(store, "t", OTHER_ID, partitions(1, OTHER_ID), {})
    await all_refused()


async def test_partitions_are_added_to_the_count_that_was_seen() -> None:
    store = MemoryStore()
    await create_topic(store, "t", ID, partitions(1), {})
    seen = await topic_of(store)
    await add_partitions(store, seen, partitions(2))
    with pytest.raises(Conflict):
        await add_partitions(store, seen, partitions(4))
    assert len((await topic_of(store)).partitions) == 3
    await delete_topic(store, seen)  # whoever deletes needs not know how many there are
    assert await keys_of(store) == []


async def test_a_topics_configuration_is_replaced_and_removed() -> None:
    store = MemoryStore()
    await create_topic(store, "t", ID, partitions(1), {})
    for configs in ({"a": "1"}, {"b": "2"}, {}):
        await write_topic_configs(store, await topic_of(store), configs)
        assert (await topic_of(store)).configs == configs
    assert await keys_of(store) == whole("t", 1)


async def test_a_guard_that_no_longer_holds_stops_everything() -> None:
    store = MemoryStore()
    await create_topic(store, "t", ID, partitions(200), {})
    topic = await topic_of(store)
    controller = await store.commit(Txn(put={keys.CONTROLLER_KEY: keys.encode_controller(1)}))
    lost: Mapping[str, int] = {keys.CONTROLLER_KEY: controller - 1}
    before = await store.read("/")
    attempts: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: create_topic(store, "u", OTHER_ID, partitions(1, OTHER_ID), {}, lost),
        lambda: create_topic(store, "u", OTHER_ID, partitions(200, OTHER_ID), {}, lost),
        lambda: add_partitions(store, topic, partitions(1), lost),
        lambda: delete_topic(store, topic, lost),
        lambda: write_topic_configs(store, topic, {"a": "1"}, lost),
    )
    for attempt in attempts:
        with pytest.raises(Conflict):
            await attempt()
    assert await store.read("/") == before
    held = {keys.CONTROLLER_KEY: controller}
    await create_topic(store, "u", OTHER_ID, partitions(200, OTHER_ID), {}, held)
    await delete_topic(store, topic, held)
    assert await keys_of(store) == sorted([*whole("u", 200), keys.CONTROLLER_KEY])


@pytest.mark.parametrize("applied", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("count", SIZES)
async def test_a_crash_around_any_commit_leaves_all_or_nothing(count: int, applied: bool) -> None:
    """Creation, enlargement and deletion are cut off at each commit; the sweep removes every trace; then it works."""
    for step in ("create", "add", "delete"):
        for commits_max in range(1_000):
            store = MemoryStore()
            await create_topic(store, "other", OTHER_ID, partitions(2, OTHER_ID), {"b": "2"})
            other = await keys_of(store)
            if step != "create":
                await create_topic(store, "t", ID, partitions(count), {"a": "1"})
            crashing = CrashingStore(store, commits_max, applied=applied)
            present = (await image_of(store)).topics.get("t")
            try:
                if present is None:
                    await create_topic(crashing, "t", ID, partitions(count), {"a": "1"})
                elif step == "add":
                    await add_partitions(crashing, present, partitions(count))
                else:
                    await delete_topic(crashing, present)
                is_done = True
            except Crash:
                is_done = False
            found = len(topic.partitions) if (topic := (await image_of(store)).topics.get("t")) else 0
            before, after = {"create": (0, count), "add": (count, 2 * count), "delete": (count, 0)}[step]
            assert found in ((after,) if is_done else (before, after))
            await sweep_leftovers(store)
            assert await keys_of(store) == sorted(other + (whole("t", found, configured=True) if found else []))
            assert await sweep_leftovers(store) == 0
            if topic is not None:
                await delete_topic(store, topic)
            await create_topic(store, "t", b"\x03" * 16, partitions(count, b"\x03" * 16), {})
            if is_done:
                break
        else:
            pytest.fail("it never came to its end")


@pytest.mark.parametrize("count", SIZES)
async def test_a_topic_is_created_over_the_leftovers_of_another(count: int) -> None:
    """Nobody needs to sweep first: deletion or creation was cut off, and the name is taken anew."""
    for commits_max in range(6):
        store = MemoryStore()
        crashing = CrashingStore(store, commits_max)
        try:
            await create_topic(crashing, "t", ID, partitions(200), {"a": "1"})
            await delete_topic(crashing, await topic_of(store))
        except Crash:
            pass
        if "t" not in (await image_of(store)).topics:
            await create_topic(store, "t", OTHER_ID, partitions(count, OTHER_ID, writer=2), {})
            topic = await topic_of(store)
            assert (topic.topic_id, topic.configs) == (OTHER_ID, {})
            assert [part.leader for part in topic.partitions] == [2] * count
            await sweep_leftovers(store)
            assert await keys_of(store) == whole("t", count)


@pytest.mark.parametrize("commits_max", range(1, 5))
async def test_deleting_a_topic_stops_and_removes_what_was_being_added(commits_max: int) -> None:
    store = MemoryStore()
    await create_topic(store, "t", ID, partitions(2), {})
    topic = await topic_of(store)
    with pytest.raises(Crash):
        await add_partitions(CrashingStore(store, commits_max), topic, partitions(3 * CHUNK_SIZE))
    await delete_topic(store, topic)
    assert await keys_of(store) == []


@pytest.mark.parametrize("commits_max", range(1, 5))
async def test_a_small_change_stops_a_larger_one_under_way(commits_max: int) -> None:
    store = MemoryStore()
    with pytest.raises(Crash):
        await create_topic(CrashingStore(store, commits_max), "t", ID, partitions(3 * CHUNK_SIZE), {})
    mark = keys.changing_key("t")
    seen = (await store.read(mark)).entries[mark].revision
    await create_topic(store, "t", OTHER_ID, partitions(2, OTHER_ID), {})
    assert (await store.read(mark)).entries == {}
    with pytest.raises(Conflict):
        await store.commit(Txn(expect={mark: seen}, put={keys.partition_key("t", 0): b""}))


class SlowStore(CrashingStore):
    """Lets others go first, for a random number of turns, before each step."""

    def __init__(self, store: MetadataStore, rng: random.Random) -> None:
        super().__init__(store, -1)
        self._rng = rng

    async def read(self, prefix: str) -> Snapshot:
        await self._wait()
        return await super().read(prefix)

    async def commit(self, txn: Txn) -> int:
        await self._wait()
        return await super().commit(txn)

    async def _wait(self) -> None:
        for _ in range(self._rng.randrange(6)):
            await asyncio.sleep(0)


async def work(store: MetadataStore, writer: int, rng: random.Random) -> int:
    """What one of several clumsy administrators does; returns how often he succeeded."""
    done = 0
    for turn in range(4):
        topic_id = bytes([writer, turn]) * 8
        count = rng.choice([1, 60, 130])
        try:
            present = (await image_of(store)).topics.get("t")
            choice = rng.randrange(4)
            if present is None:
                await create_topic(store, "t", topic_id, partitions(count, topic_id, writer), {"w": str(writer)})
            elif choice == 0:
                await add_partitions(store, present, partitions(count, present.topic_id, writer))
            elif choice == 1:
                await write_topic_configs(store, present, {"w": str(writer)})
            elif choice == 2:
                await sweep_leftovers(store)
            else:
                await delete_topic(store, present)
            done += 1
        except Conflict:
            pass
        except KafkaError as error:
            assert error.code in (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return done


@pytest.mark.parametrize("seed", range(30))
async def test_several_writers_never_mix_their_partitions(seed: int) -> None:
    """Every change is followed by an image, which refuses half a topic; each write is one writer's from end to end."""
    rng = random.Random(seed)
    store = MemoryStore()
    done = await asyncio.gather(*(work(SlowStore(store, rng), writer, rng) for writer in range(1, 5)))
    assert sum(done) > 4
    final = await store.read("/")
    image = ClusterImage()
    changes = store.watch("/", 0)
    while image.revision < final.revision:
        before = image
        image, delta = image.apply(await anext(changes))
        for topic in delta.changed:
            added = topic.partitions[len(before.topics["t"].partitions) :]
            assert len({part.leader for part in added}) <= 1
        for topic in delta.created:
            assert len({part.leader for part in topic.partitions}) == 1
            assert topic.configs == {"w": str(topic.partitions[0].leader)}
    await changes.aclose()
    await sweep_leftovers(store)
    last = (await image_of(store)).topics.get("t")
    left = [] if last is None else whole("t", len(last.partitions), configured=True)
    assert await keys_of(store) == left


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    state = new_partition(ID, 0, (3, 1, 2), (1, 2).__contains__)
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((3, 1, 2), (1, 2), 1, 0)
    with pytest.raises(KafkaError, match="partition 5 are fenced") as caught:
        new_partition(ID, 5, (3,), (1, 2).__contains__)
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
