"""An admin client of a scripted cluster with transactions, perhaps of an older release."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from odradek.client.admin.admin import Admin
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.codec.schema import Request
from tests.client.admin_handlers import serve_admin
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.transaction_handlers import Transactions, serve_transactions

TOPIC = "orders"
P0, P1, P2 = (TopicPartition(TOPIC, index) for index in range(3))
"""Each is led by the broker of its number."""


@asynccontextmanager
async def asking(
    versions: dict[type[Request[Any]], int] | None = None, **settings: Any
) -> AsyncGenerator[tuple[Admin, ScriptedCluster, Transactions]]:
    """An admin client of three brokers with a topic. `versions`: the last one that they serve of a request."""
    with scripted_cluster(brokers=3) as scripted:
        scripted.create_topic(TOPIC, 3)
        serve_admin(scripted)
        served = serve_transactions(scripted)
        for broker in scripted.brokers.values():
            for request, last in (versions or {}).items():
                broker.versions[request] = (request.min_version, last)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment, **settings) as admin:
            yield admin, scripted, served
