"""An admin client of a scripted cluster with groups, perhaps of an older release."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from tests.client.admin_handlers import serve_admin
from tests.client.group_handlers import Groups, serve_groups
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

TOPIC = "orders"
P0, P1 = (TopicPartition(TOPIC, partition) for partition in range(2))


@asynccontextmanager
async def asking(
    versions: dict[type[Request[Any]], int] | None = None, **settings: Any
) -> AsyncGenerator[tuple[Admin, ScriptedCluster, Groups]]:
    """An admin client of three brokers with a topic. `versions`: the last one that they serve of a request."""
    with scripted_cluster(brokers=3) as scripted:
        scripted.create_topic(TOPIC, 2)
        serve_admin(scripted)
        groups = serve_groups(scripted)
        for broker in scripted.brokers.values():
            for request, last in (versions or {}).items():
                if last < 0:
                    del broker.versions[request]
                else:
                    broker.versions[request] = (request.min_version, last)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment, **settings) as admin:
            yield admin, scripted, groups


def codes(failed: ItemsFailed) -> dict[Any, ErrorCode | None]:
    return {item: error.code for item, error in failed.errors.items()}
