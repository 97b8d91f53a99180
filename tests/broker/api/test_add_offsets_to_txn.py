"""AddOffsetsToTxn: the partition of `__consumer_offsets` that has a group becomes part of a transaction."""

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group, of_transactional_id
from odradek.protocol.errors import ErrorCode
from tests.broker.groups import GROUP
from tests.broker.support import make_topic, running_broker
from tests.broker.transactions import PAYMENTS, Denying, Producer, described, running_transactions, state_of

pytestmark = pytest.mark.virtual_time
VERSIONS = pytest.mark.parametrize("version", range(5))


@VERSIONS
async def test_the_partition_of_the_group_is_included(version: int) -> None:
    async with running_transactions() as context:
        producer = Producer(context, is_new=False)
        await producer.init()
        for group_id in (GROUP, GROUP, "shipping"):
            assert await producer.add_offsets(group_id, version=version) is ErrorCode.NONE
        [topic] = (await described(context)).topics
        indexes = {context.groups.index_of(each) for each in (GROUP, "shipping")}
        assert (topic.topic, {*topic.partitions}) == ("__consumer_offsets", indexes)


@VERSIONS
async def test_the_topic_of_groups_is_made_where_there_is_none(version: int) -> None:
    """No group has been asked for: the producer's transaction is the first to need it."""
    async with running_broker({"offsets.topic.num.partitions": "2"}) as context:
        await make_topic(context, "__transaction_state", configs={"cleanup.policy": "compact"})
        producer = Producer(context)
        assert await producer.init() is ErrorCode.NONE
        assert await producer.add_offsets(version=version) is ErrorCode.NONE
        assert len(context.metadata.image.topics["__consumer_offsets"].partitions) == 2


@VERSIONS
async def test_who_is_fenced_is_told_so_as_its_version_knows_it(version: int) -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        await Producer(context).init()
        fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await producer.add_offsets(version=version) is fenced
        assert await state_of(context) == "Empty"


@VERSIONS
async def test_unknown_and_empty_ids_are_refused(version: int) -> None:
    async with running_transactions() as context:
        for transactional_id, code in (
            ("unknown", ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            ("", ErrorCode.INVALID_REQUEST),
        ):
            stranger = Producer(context, transactional_id)
            stranger.producer_id = stranger.epoch = 0
            assert await stranger.add_offsets(version=version) is code


@VERSIONS
async def test_it_asks_for_the_transactional_id_and_for_the_group(version: int) -> None:
    access = Denying()
    async with running_transactions(access=access) as context:
        producer = Producer(context)
        await producer.init()
        access.denied = ((Operation.WRITE, of_transactional_id(PAYMENTS)),)
        refused = await producer.add_offsets(version=version)
        assert refused is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        access.denied = ((Operation.READ, of_group(GROUP)),)
        assert await producer.add_offsets(version=version) is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert await state_of(context) == "Empty"
