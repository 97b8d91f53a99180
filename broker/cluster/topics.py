"""Creating, enlarging and deleting a topic in the store, whole or not at all although a commit is small.

A topic exists exactly while `/topics/<name>` does. What fits into one commit is one commit. A larger creation writes
its partition keys in chunks, and then `/topics/<name>`, which makes them visible; a larger deletion deletes
`/topics/<name>` first. A crash between two commits leaves partition keys that nobody sees and that `sweep_leftovers`
removes.

Two writers never mix their partition keys: who needs more than one commit first puts `/changing/<topic>` and expects
it, at the revision it got, in every commit that follows. Another writer, or the sweep, takes the topic over by writing
or deleting that key, which fails the first one's next commit.

`guard` joins the conditions of every commit: a controller passes `/controller` at the revision of its election.
All functions raise Conflict when the guard no longer holds or others kept getting in between, and what
`MetadataStore.commit` raises.
"""

from collections.abc import Iterable, Mapping, Sequence

from odradek.broker.cluster.keys import (
    CHANGING_PREFIX,
    PARTITIONS_PREFIX,
    TOPIC_CONFIGS_PREFIX,
    TOPICS_PREFIX,
    PartitionState,
    TopicState,
    changing_key,
    decode_partition,
    decode_topic,
    encode_changing,
    encode_configs,
    parse_partition,
    partition_key,
    partitions_prefix,
    topic_config_key,
    topic_key,
)
from odradek.broker.cluster.partition_changes import IsUsable
from odradek.broker.cluster.store import CHUNK_SIZE, Conflict, MetadataStore, Snapshot, Txn
from odradek.broker.cluster.topic_image import TopicImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.tasks import breathe

ATTEMPTS_MAX = 5
GONE_WITH_TOPIC = 3
"""Keys that are deleted with a topic, besides those of its partitions."""
LOOKED_AT_TOGETHER = 1000
"""Keys that are decoded before the loop gets a turn."""

NO_GUARD: Mapping[str, int] = {}


def new_partition(topic_id: bytes, index: int, replicas: Sequence[int], is_usable: IsUsable) -> PartitionState:
    """A partition as it begins: led by the first of its replicas that may lead, in sync with all that may. The others
    join when they are back. Nobody is eligible, however few are in sync: nothing was acknowledged yet.

    Raises KafkaError INVALID_REPLICA_ASSIGNMENT when none may lead.
    """
    isr = tuple(broker_id for broker_id in replicas if is_usable(broker_id))
    if not isr:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown.",
        )
    return PartitionState(topic_id, tuple(replicas), isr, isr[0])


# -- creating and enlarging -----------------------------------------------------------------------------------------


async def create_topic(
    store: MetadataStore,
    name: str,
    topic_id: bytes,
    partitions: Sequence[PartitionState],
    configs: Mapping[str, str],
    guard: Mapping[str, int] = NO_GUARD,
) -> int:
    """Creates the topic and returns the revision at which it became visible. Names and counts were checked before.

    Raises KafkaError TOPIC_ALREADY_EXISTS.
    """
    assert partitions, name
    state = TopicState(topic_id, len(partitions))
    final = {topic_key(name): state.encode()}
    if configs:
        final[topic_config_key(name)] = encode_configs(configs)
    keys = {partition_key(name, index): partition.encode() for index, partition in enumerate(partitions)}
    for _ in range(ATTEMPTS_MAX):
        try:
            return await _write_partitions(store, name, 0, topic_id, keys, final, guard)
        except Conflict:
            if await _read_topic(store, name) is not None:
                raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.") from None
    raise Conflict(f"topic {name} could not be created: others keep changing it")


async def add_partitions(
    store: MetadataStore, topic: TopicImage, added: Sequence[PartitionState], guard: Mapping[str, int] = NO_GUARD
) -> int:
    """Adds partitions behind those that `topic` has, and returns the revision at which they became visible.

    Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION when the topic was deleted, Conflict also when it was enlarged by
    somebody else: the caller's count is then out of date.
    """
    first = len(topic.partitions)
    state = TopicState(topic.topic_id, first + len(added))
    keys = {partition_key(topic.name, first + index): partition.encode() for index, partition in enumerate(added)}
    final = {topic_key(topic.name): state.encode()}
    for _ in range(ATTEMPTS_MAX):
        try:
            return await _write_partitions(store, topic.name, topic.revision, topic.topic_id, keys, final, guard)
        except Conflict:
            present = await _read_live(store, topic)
            if present.revision != topic.revision:
                raise
    raise Conflict(f"partitions of topic {topic.name} could not be added: others keep changing it")


async def _write_partitions(
    store: MetadataStore,
    name: str,
    topic_revision: int,
    topic_id: bytes,
    keys: Mapping[str, bytes],
    final: Mapping[str, bytes],
    guard: Mapping[str, int],
) -> int:
    """Writes the partition keys and then the final ones, while the topic's key stays at `topic_revision`."""
    expect = {**guard, topic_key(name): topic_revision}
    mark = changing_key(name)
    if len(keys) <= CHUNK_SIZE:
        return await store.commit(Txn(expect=expect, put={**keys, **final}, delete=(mark,)))
    found = (await store.read(mark)).entries.get(mark)
    mark_revision = await store.commit(
        Txn(expect={**expect, mark: 0 if found is None else found.revision}, put={mark: encode_changing(topic_id)})
    )
    expect[mark] = mark_revision
    names = tuple(keys)
    for start in range(0, len(names), CHUNK_SIZE):
        await store.commit(Txn(expect=expect, put={key: keys[key] for key in names[start : start + CHUNK_SIZE]}))
    return await store.commit(Txn(expect=expect, put=final, delete=(mark,)))


# -- changing and deleting ------------------------------------------------------------------------------------------


async def write_topic_configs(
    store: MetadataStore, topic: TopicImage, configs: Mapping[str, str], guard: Mapping[str, int] = NO_GUARD
) -> int:
    """Replaces the topic's own configuration. The caller changes one topic's configuration at a time.

    Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION.
    """
    key = topic_config_key(topic.name)
    for _ in range(ATTEMPTS_MAX):
        present = await _read_live(store, topic)
        expect = {**guard, topic_key(topic.name): present.revision}
        try:
            if configs:
                return await store.commit(Txn(expect=expect, put={key: encode_configs(configs)}))
            return await store.commit(Txn(expect=expect, delete=(key,)))
        except Conflict:
            continue
    raise Conflict(f"the configuration of topic {topic.name} could not be written: others keep changing the topic")


async def delete_topic(store: MetadataStore, topic: TopicImage, guard: Mapping[str, int] = NO_GUARD) -> int:
    """Deletes the topic and returns the revision at which it was gone.

    Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION when it is gone already.
    """
    name = topic.name
    count = len(topic.partitions)
    gone = _keys_of(name, count if count <= CHUNK_SIZE else 0)
    topic_revision = topic.revision
    for _ in range(ATTEMPTS_MAX):
        try:
            revision = await store.commit(Txn(expect={**guard, topic_key(name): topic_revision}, delete=gone))
        except Conflict:
            topic_revision = (await _read_live(store, topic)).revision
            continue
        # Partitions may have been added meanwhile, by a writer that we just stopped, too.
        await _delete_leftovers(store, name, guard)
        return revision
    raise Conflict(f"topic {name} could not be deleted: others keep changing it")


async def delete_topics(store: MetadataStore, topics: Iterable[TopicImage]) -> None:
    """Deletes topics, as many in one commit as it takes: one at a time costs each broker a new image for each.

    Topics that are gone already are no error.
    """
    together: list[TopicImage] = []
    operations = 0
    for topic in topics:
        count = len(topic.partitions) + GONE_WITH_TOPIC
        if together and operations + count > CHUNK_SIZE:
            await _delete_together(store, together)
            together, operations = [], 0
        together.append(topic)
        operations += count
    if together:
        await _delete_together(store, together)


async def _delete_together(store: MetadataStore, topics: Sequence[TopicImage]) -> None:
    """Where one of them has changed, or is too large: each by itself."""
    if len(topics) > 1:
        gone = [key for topic in topics for key in _keys_of(topic.name, len(topic.partitions))]
        expect = {topic_key(topic.name): topic.revision for topic in topics}
        nobody_at_work = {changing_key(topic.name): 0 for topic in topics}
        try:
            await store.commit(Txn(expect={**expect, **nobody_at_work}, delete=tuple(gone)))
        except Conflict:
            pass
        else:
            return
    for topic in topics:
        try:
            await delete_topic(store, topic)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise


def _keys_of(name: str, partition_count: int) -> tuple[str, ...]:
    partitions = (partition_key(name, index) for index in range(partition_count))
    return topic_key(name), topic_config_key(name), changing_key(name), *partitions


async def _read_topic(store: MetadataStore, name: str) -> TopicState | None:
    key = topic_key(name)
    entry = (await store.read(key)).entries.get(key)
    return None if entry is None else decode_topic(entry.value, name, entry.revision)


async def _read_live(store: MetadataStore, topic: TopicImage) -> TopicState:
    """The topic as the store has it now. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION."""
    present = await _read_topic(store, topic.name)
    if present is None or present.topic_id != topic.topic_id:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic.name}' does not exist.")
    return present


# -- leftovers ------------------------------------------------------------------------------------------------------


async def sweep_leftovers(store: MetadataStore, guard: Mapping[str, int] = NO_GUARD) -> int:
    """Removes what unfinished creations and deletions left, and returns how many keys that were.

    It stops whoever is at work on a topic in several commits, who then begins again: so it is for a controller that was
    just elected, and passes its guard.
    """
    count = 0
    for key, entry in (await store.read(CHANGING_PREFIX)).entries.items():
        await store.commit(Txn(expect={**guard, key: entry.revision}, delete=(key,)))
        count += 1
    topics = await store.read(TOPICS_PREFIX)
    suspects = {parse_partition(key[len(PARTITIONS_PREFIX) :])[0]: None for key in await _leftovers(store, topics)}
    for name in suspects:
        count += await _delete_leftovers(store, name, guard)
    for key, entry in (await store.read(TOPIC_CONFIGS_PREFIX)).entries.items():
        name = key[len(TOPIC_CONFIGS_PREFIX) :]
        if topic_key(name) not in topics.entries:
            await store.commit(Txn(expect={**guard, topic_key(name): 0, key: entry.revision}, delete=(key,)))
            count += 1
    return count


async def _delete_leftovers(store: MetadataStore, name: str, guard: Mapping[str, int]) -> int:
    """Deletes the partition keys under a topic's name that are not the topic's. Leaves them when others are at work."""
    count = 0
    for _ in range(ATTEMPTS_MAX):
        topics = await store.read(topic_key(name))
        leftovers = await _leftovers(store, topics, name)
        topic = topics.entries.get(topic_key(name))
        expect = {**guard, topic_key(name): 0 if topic is None else topic.revision, changing_key(name): 0}
        keys = tuple(leftovers)
        try:
            for start in range(0, len(keys), CHUNK_SIZE):
                chunk = keys[start : start + CHUNK_SIZE]
                await store.commit(Txn(expect={**expect, **{key: leftovers[key] for key in chunk}}, delete=chunk))
                count += len(chunk)
        except Conflict:
            continue
        return count
    return count


async def _leftovers(store: MetadataStore, topics: Snapshot, name: str | None = None) -> dict[str, int]:
    """Keys of partitions that no topic in `topics` has, with their revisions; of one topic, or of all."""
    prefix = PARTITIONS_PREFIX if name is None else partitions_prefix(name)
    leftovers: dict[str, int] = {}
    known: dict[str, TopicState] = {}
    for number, (key, entry) in enumerate((await store.read(prefix)).entries.items()):
        if number % LOOKED_AT_TOGETHER == LOOKED_AT_TOGETHER - 1:
            await breathe()
        topic, index = parse_partition(key[len(PARTITIONS_PREFIX) :])
        if topic not in known and (found := topics.entries.get(topic_key(topic))) is not None:
            known[topic] = decode_topic(found.value, topic)
        state = known.get(topic)
        if (
            state is None
            or index >= state.partition_count
            or decode_partition(entry.value, topic, index).topic_id != state.topic_id
        ):
            leftovers[key] = entry.revision
    return leftovers
