"""Whole brokers with an authorizer: from their first request on, over restarts and restores, and three of them."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from odradek.broker.access.acl import AclBinding, Permission
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import ResourceType
from odradek.broker.cluster.backup import take_backup
from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.features import ACLS
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import MetadataStore
from odradek.broker.config.access_options import STANDARD_AUTHORIZER
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.membership.standing import Standing
from odradek.broker.offline.rescue.restoring import restore
from odradek.broker.server import Broker
from odradek.broker.startup_errors import StartRefused
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import CreateAclsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.runtime.environment import Environment
from tests.broker.access.rules import acl
from tests.broker.api.acls import creation, everything, known
from tests.broker.servers import started
from tests.broker.wire import RawClient, connected, settings

BROKERS = "User:ANONYMOUS"
"""As which clients without certificates and SASL come, too: these tests take their rights away by hand."""
RULES: Mapping[str, str] = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": BROKERS}
ALLOWS_TOPICS = acl(Operation.CREATE, "*", kind=ResourceType.TOPIC, principal=BROKERS)


def broker_on(
    disk: MemoryDisk, options: Mapping[str, str] = RULES, *, node_id: int = 0, store: MemoryStore | None = None
) -> Broker:
    return Broker(settings("data", options, node_id), Environment(), disk, store=store)


async def image_of(store: MetadataStore) -> ClusterImage:
    return ClusterImage.from_snapshot(await store.read("/"))


async def create_topic_code(client: RawClient) -> int:
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1, assignments=[], configs=[])
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
    return (await client.ask(request, 7)).topics[0].error_code


async def create_acls(client: RawClient, *bindings: AclBinding) -> list[int]:
    answer = await client.ask(CreateAclsRequest(creations=[creation(each) for each in bindings]), 3)
    return [each.error_code for each in answer.results]


async def test_the_first_request_of_a_new_cluster_is_refused() -> None:
    """`super.users` names somebody else; ANONYMOUS, as whom brokers come, may do what brokers do, by an ACL."""
    disk = MemoryDisk()
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        action = acl(Operation.CLUSTER_ACTION, "kafka-cluster", kind=ResourceType.CLUSTER, principal=BROKERS)
        assert await create_acls(client, action) == [ErrorCode.NONE]
    options = {**RULES, "super.users": "User:admin"}
    async with started(broker_on(disk, options)) as broker, connected(broker) as client:
        assert broker.context.access.is_enforced
        assert await create_topic_code(client) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert await create_acls(client, ALLOWS_TOPICS) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        assert (await client.ask(MetadataRequest(topics=None), 9)).topics == []


async def test_a_start_is_refused_where_brokers_could_not_replicate() -> None:
    for super_users in ("", "User:admin"):
        with pytest.raises(StartRefused, match=r"User:ANONYMOUS, who may not do what brokers do .*would stop"):
            await broker_on(MemoryDisk(), {**RULES, "super.users": super_users}).start()


async def test_acls_outlive_a_restart_and_come_back_from_a_backup() -> None:
    disk = MemoryDisk()
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        assert await create_acls(client, ALLOWS_TOPICS, acl()) == [ErrorCode.NONE] * 2
        assert broker.context.metadata.image.features[ACLS] == 1
        backup = take_backup(await broker.context.metadata.store.read("/"), "now")
    async with started(broker_on(disk)) as broker:
        assert known(broker.context) == {ALLOWS_TOPICS, acl()}
    restored = MemoryDisk()
    restored.make_dir("data")
    store = EmbeddedStore.open(restored, "data")
    await restore(store, backup)
    await store.close()
    again = EmbeddedStore.open(restored, "data")
    assert set((await image_of(again)).acls.values()) == {ALLOWS_TOPICS, acl()}
    assert (await image_of(again)).features == {ACLS: 1}
    await again.close()


async def test_without_an_authorizer_stored_acls_mean_nothing() -> None:
    disk = MemoryDisk()
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        assert await create_acls(client, acl(Operation.ALL, "*")._replace(permission=Permission.DENY)) == [
            ErrorCode.NONE
        ]
    async with started(broker_on(disk, {})) as broker, connected(broker) as client:
        assert await create_topic_code(client) == ErrorCode.NONE
        assert await create_acls(client, acl()) == [ErrorCode.SECURITY_DISABLED]


# ------------------------------------------------------------------------------------------------------ three brokers
@asynccontextmanager
async def three() -> AsyncGenerator[Sequence[Broker]]:
    store = MemoryStore()
    async with AsyncExitStack() as stack:
        brokers = [
            await stack.enter_async_context(started(broker_on(MemoryDisk(), node_id=number, store=store)))
            for number in (1, 2, 3)
        ]
        yield brokers


async def test_what_is_answered_counts_at_every_broker() -> None:
    async with three() as brokers, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(broker)) for broker in brokers]
        for number in range(5):
            for client in clients:
                binding = acl(name=f"t{number}")
                assert await create_acls(client, binding) == [ErrorCode.NONE]
                for broker in brokers:
                    assert known(broker.context) == {binding}
                answer = await client.ask(DeleteAclsRequest(filters=[everything()]), 3)
                assert len(answer.filter_results[0].matching_acls) == 1
                for broker in brokers:
                    assert known(broker.context) == set()


async def test_one_that_drains_holds_nobody_up() -> None:
    async with three() as brokers:
        stopping = next(broker for broker in brokers if not broker.context.member.controller.is_active)
        other = next(broker for broker in brokers if broker is not stopping)
        async with connected(other) as client:
            await stopping.drain()
            async with asyncio.timeout(15):
                assert await create_acls(client, acl()) == [ErrorCode.NONE]


async def test_the_rules_count_as_soon_as_a_new_broker_has_started() -> None:
    async with started(broker_on(MemoryDisk())) as broker:
        assert broker.context.access.is_enforced
        assert broker.context.member.standing is not None
        assert broker.context.member.standing.is_sure()


async def test_one_that_has_others_is_certain_before_its_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(standing: Standing) -> None:
        """Nobody asks again."""

    monkeypatch.setattr(Standing, "keep", never)
    async with three() as brokers:
        standing = brokers[-1].context.member.standing
        assert standing is not None
        assert standing.is_sure()
