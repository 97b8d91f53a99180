"""What an admin client asks of several brokers at once goes on when somebody else cancels all tasks."""

import asyncio

import pytest

from odradek.client.admin.admin import Admin
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.client.admin_handlers import serve_admin
from tests.client.broker_faults import late
from tests.client.scripted_broker import scripted_cluster

pytestmark = pytest.mark.virtual_time


async def test_what_is_asked_of_several_brokers_is_answered() -> None:
    with scripted_cluster(brokers=3) as scripted:
        serve_admin(scripted)
        scripted.on(DescribeLogDirsRequest, late(500), times=None)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment) as admin:
            describing = asyncio.ensure_future(admin.describe_log_dirs())
            await asyncio.sleep(0.1)
            for task in asyncio.all_tasks() - {asyncio.current_task(), describing}:
                task.cancel()
            assert set(await describing) == {0, 1, 2}
