"""A broker without sockets: its `Context`, put together as the server does it, on a memory disk and a memory store.

    async with running_broker({"num.partitions": "3"}) as context:
        await make_topic(context, "orders")
        answer = await ask(context, MetadataRequest(topics=None), version=12)

`ask` sends a request through `dispatch` and back, encoded at its version both ways, so an answer is what a client would
read: fields that the version lacks have their defaults.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from odradek.broker.access.access import Access
from odradek.broker.cluster.features import ACLS, GROUP_VERSION, GROUPS, TRANSACTION_VERSION, TRANSACTIONS
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    CONTROLLER_KEY,
    FEATURES_KEY,
    BrokerState,
    PartitionState,
    broker_key,
    decode_partition,
    encode_controller,
    encode_features,
    partition_key,
)
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Lease, MetadataStore, Txn
from odradek.broker.cluster.topics import create_topic
from odradek.broker.composition import Parts, compose
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import BrokerIdentity, Call, Caller, Context
from odradek.broker.handling.dispatch import dispatch_alone
from odradek.broker.log.validation import Origin
from odradek.broker.membership.registration import Identity, Registration
from odradek.broker.observability.request_times import RequestTimes
from odradek.broker.replica.leadership import LeadershipSubscriber
from odradek.broker.replica.partition import Partition
from odradek.broker.served import served_with
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

R = TypeVar("R", bound=Response)

NODE_ID = 0
LISTENER = "PLAINTEXT"
CLUSTER_ID = "b2RyYWRlay10ZXN0cy0wMQ"
DATA_DIR = "data"
HERE = BrokerState(NODE_ID, {LISTENER: ("127.0.0.1", 9092), "EXTERNAL": ("broker.example", 19092)})
NO_SETTINGS: Mapping[str, str] = {}
FEATURES: Mapping[str, int] = {GROUPS: 1, GROUP_VERSION: 1, TRANSACTIONS: 1, TRANSACTION_VERSION: 2, ACLS: 1}
"""What is finalized."""


def registered(store: MetadataStore, environment: Environment, image: ClusterImage, lease: Lease) -> Registration:
    """Of broker 0, as the store has it already."""
    identity = Identity(NODE_ID, dict(HERE.endpoints), (HERE.directory_id,))
    registration = Registration(store, environment, identity, lease.ttl_ms)
    registration.epoch = image.brokers[NODE_ID].epoch
    registration.lease = lease
    registration.term.never_ends()
    registration.note_controller(True)
    registration.follow(image)
    return registration


@asynccontextmanager
async def running_broker(
    settings: Mapping[str, str] = NO_SETTINGS,
    *,
    disk: Disk | None = None,
    data_dirs: Sequence[str] = (DATA_DIR,),
    store: MetadataStore | None = None,
    brokers: Sequence[BrokerState] = (HERE,),
    subscribers: Sequence[LeadershipSubscriber] = (),
    access: Access | None = None,
    environment: Environment | None = None,
) -> AsyncGenerator[Context]:
    """The context of broker 0, with the metadata followed. `brokers` are those registered, all but the first silent;
    `subscribers` are told what it leads; `access`: what may be done, by default as `settings` say."""
    environment = Environment(asyncio.get_running_loop()) if environment is None else environment
    tasks = Tasks(environment.loop)
    disk = MemoryDisk() if disk is None else disk
    for path in data_dirs:
        disk.make_dir(path)
    directories = DataDirectories(disk, data_dirs, environment, tasks)
    store = MemoryStore() if store is None else store
    put = {broker_key(broker.broker_id): broker.encode() for broker in brokers}
    put |= {CONTROLLER_KEY: encode_controller(NODE_ID), FEATURES_KEY: encode_features(FEATURES)}
    await store.commit(Txn(put=put))
    image = ClusterImage.from_snapshot(await store.read("/"))
    config = BrokerConfig(settings, image.configs_of_broker(None), image.configs_of_broker(NODE_ID))
    lease = await store.lease(2000)
    context = compose(
        Parts(
            BrokerIdentity(NODE_ID, CLUSTER_ID),
            environment,
            tasks,
            config,
            disk,
            directories,
            store,
            image,
            registered(store, environment, image, lease),
            LISTENER,
            served_with(config),
            {},
            subscribers,
            access,
        )
    )
    context.partitions.load(image)
    context.metadata.subscribe(context.partitions.apply)
    tasks.start(context.metadata.follow(context.environment), "follow the metadata")
    if context.member.standing is not None:
        await context.member.standing.confirm()
        tasks.start(context.member.standing.keep(), "confirm that ACLs are the newest")
    try:
        yield context
    finally:
        context.stop()
        await store.close()
        await tasks.close()
        context.partitions.close()


def call(caller: Caller | None = None, version: int = 0, client_id: str | None = None) -> Call:
    """For handlers that are called by themselves."""
    return Call(caller or Caller(LISTENER), version, 1, client_id, RequestTimes(0.0, 0))


async def ask(
    context: Context, request: Request[R], version: int, *, listener: str = LISTENER, caller: Caller | None = None
) -> R:
    """The answer as a client reads it. Raises CloseConnection where the connection would be closed."""
    answer = await ask_if_answered(context, request, version, listener=listener, caller=caller)
    assert answer is not None, "the broker did not answer"
    return answer


async def ask_if_answered(
    context: Context, request: Request[R], version: int, *, listener: str = LISTENER, caller: Caller | None = None
) -> R | None:
    """As `ask`; None for no answer, which Produce with acks=0 gives."""
    flexible = request.is_flexible(version)
    header = RequestHeader(request.api_key, version, 7, "support")
    frame = b"".join(request_frame(header, flexible, encode_parts(request, version)))
    reply = await dispatch_alone(context, caller or Caller(listener), memoryview(frame)[4:])
    if reply is None:
        return None
    body = b"".join(reply)[4:]
    flexible_header = flexible and request.api_key != ApiVersionsRequest.api_key
    correlation_id, position = read_response_header(body, flexible_header)
    assert correlation_id == 7
    return decode(type(request).response_type, version, body, position)


async def make_topic(
    context: Context,
    name: str,
    partition_count: int = 1,
    configs: Mapping[str, str] = NO_SETTINGS,
    *,
    replicas: Sequence[int] = (NODE_ID,),
    isr: Sequence[int] | None = None,
    leader: int = NODE_ID,
) -> bytes:
    """Creates a topic behind the handlers' back, and returns its id."""
    topic_id = context.environment.random_uuid()
    state = PartitionState(topic_id, tuple(replicas), tuple(replicas if isr is None else isr), leader)
    revision = await create_topic(context.metadata.store, name, topic_id, [state] * partition_count, dict(configs))
    await asyncio.wait_for(context.metadata.applied(revision), 5)
    return topic_id


def id_of(context: Context, topic: str) -> bytes:
    """The topic's id; where there is no such topic, one that none has."""
    found = context.metadata.image.topics.get(topic)
    return topic.encode()[:16].ljust(16, b"?") if found is None else found.topic_id


async def stored_partition(store: MetadataStore, topic: str = "orders", index: int = 0) -> PartitionState:
    """What the store has of a partition."""
    key = partition_key(topic, index)
    entry = (await store.read(key)).entries[key]
    return decode_partition(entry.value, topic, index, entry.revision)


def batch(*values: bytes, timestamps_ms: Sequence[int] | None = None, key: bytes | None = None) -> bytes:
    """An uncompressed batch with these values, one millisecond apart unless told otherwise."""
    times = range(1_000, 1_000 + len(values)) if timestamps_ms is None else timestamps_ms
    return build_batch(
        [Record(offset, time, key, value, ()) for offset, (time, value) in enumerate(zip(times, values, strict=True))]
    )


def append(partition: Partition, data: bytes) -> int:
    """Appends a batch as leader, whatever a client may send, and returns its base offset."""
    now_ms = partition.host.environment.now_ms()
    return partition.append(data, 1, now_ms, origin=Origin.COORDINATOR).appended.base_offset
