"""`odradek groups` against our own broker, with a member that joins by raw messages."""

import json

import pytest

from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.groups import groups
from odradek.client.commands.options import Target
from tests.broker.wire import batch, connected, create_topic, produced, running_broker
from tests.client.commands.scripted import ran_on
from tests.client.raw_member import joined

OPTIONS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
Printed = pytest.CaptureFixture[str]


async def test_a_group_is_shown_refused_while_it_has_members_and_reset_then(capsys: Printed) -> None:
    async with running_broker(OPTIONS) as broker, connected(broker) as client:
        await create_topic(client, "orders", 2)
        for index, count in enumerate((3, 20)):
            for _ in range(count):
                assert (await produced(client, "orders", batch(b"x"), index)).error_code == 0
        endpoint = next(iter(broker.bound.values()))
        target = Target(bootstrap_server=f"{endpoint.host}:{endpoint.port}")
        reset = ("reset", "billing", "--topic", "orders", "--to-offset", "7", "--execute")
        assert await ran_on(target, groups, *reset) is None
        assert capsys.readouterr().out.splitlines() == [
            "billing\torders\t0\t-\t3\t7 is behind the end",
            "billing\torders\t1\t-\t7\t-",
        ]
        member_id, _ = await joined(client, "billing", {"orders": [0]})
        assert await ran_on(target, groups, "describe") is None
        assert capsys.readouterr().out.splitlines() == [
            f"billing\tStable\torders\t0\t3\t0\t3\t0\t{member_id}\traw\t127.0.0.1",
            "billing\tStable\torders\t1\t7\t0\t20\t13\t-\t-\t-",
        ]
        error = await ran_on(target, groups, *reset)
        assert isinstance(error, CommandFailed)
        assert f"billing is Stable and has members: {member_id} of raw at 127.0.0.1" in str(error)
        assert await ran_on(target, groups, "members", "billing") is None
        assert capsys.readouterr().out == f"billing\t{member_id}\t-\traw\t127.0.0.1\torders:0\n"
        assert await ran_on(target, groups, "describe", "billing", "--json") is None
        (found,) = json.loads(capsys.readouterr().out)
        assert found["offsets_retention_minutes"] == 10_080
        assert found["offsets_expire"] == "offsets of what its members read are kept"
        assert await ran_on(target, groups, "list") is None
        assert capsys.readouterr().out == "billing\tclassic\tStable\tconsumer\n"
