"""DescribeClientQuotas: what is set, by filter, and what no filter may say."""

import pytest

from odradek.broker.cluster.quotas import encode_quotas, entity_of, quota_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tests.broker.support import ask, running_broker

SET: list[tuple[dict[str, str | None], dict[str, float]]] = [
    ({"ip": None}, {"connection_creation_rate": 5.0}),
    ({"user": "alice", "client-id": None}, {"producer_byte_rate": 1.0}),
    ({"user": "alice"}, {"producer_byte_rate": 2.0, "request_percentage": 0.5}),
    ({"client-id": "app"}, {"consumer_byte_rate": 3.0}),
]


async def prepared(context: Context) -> None:
    for names, limits in SET:
        revision = await context.metadata.store.commit(Txn(put={quota_key(entity_of(names)): encode_quotas(limits)}))
        await context.metadata.applied(revision)


def component(kind: str, match_type: int, match: str | None = None) -> ComponentData:
    return ComponentData(entity_type=kind, match_type=match_type, match=match)


async def describe(context: Context, *components: ComponentData, strict: bool = False) -> DescribeClientQuotasResponse:
    return await ask(context, DescribeClientQuotasRequest(components=list(components), strict=strict), 1)


def told(answer: DescribeClientQuotasResponse) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    assert answer.entries is not None
    return [
        (
            {each.entity_type: each.entity_name for each in entry.entity},
            {each.key: each.value for each in entry.values},
        )
        for entry in answer.entries
    ]


async def test_everything_is_told_in_the_order_of_entities() -> None:
    async with running_broker() as context:
        assert told(await describe(context)) == []
        await prepared(context)
        assert told(await describe(context)) == [SET[3], SET[0], SET[2], SET[1]]


async def test_a_filter_tells_what_it_matches() -> None:
    async with running_broker() as context:
        await prepared(context)
        assert told(await describe(context, component("user", 0, "alice"))) == [SET[2], SET[1]]
        assert told(await describe(context, component("user", 0, "alice"), strict=True)) == [SET[2]]
        assert told(await describe(context, component("ip", 2))) == [SET[0]]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (component("user", 0), ErrorCode.INVALID_REQUEST),
        (component("group", 0, "g"), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused_with_a_reason(asked: ComponentData, code: ErrorCode) -> None:
    async with running_broker() as context:
        answer = await describe(context, asked)
        assert (answer.error_code, answer.entries) == (code, None)
        assert answer.error_message
