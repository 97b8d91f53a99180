"""`odradek features`, against our own broker, and command lines that are refused before anything is asked."""

import json

import click
import pytest
from click.testing import CliRunner

from odradek.client.commands.features import features
from odradek.client.commands.options import Target
from odradek.client.errors.client_errors import BrokerError
from tests.broker.wire import running_broker
from tests.client.commands.scripted import ran_on

Printed = pytest.CaptureFixture[str]


async def test_levels_are_shown_and_changed(capsys: Printed) -> None:
    async with running_broker() as broker:
        endpoint = next(iter(broker.bound.values()))
        target = Target(bootstrap_server=f"{endpoint.host}:{endpoint.port}")
        assert await ran_on(target, features, "describe") is None
        assert capsys.readouterr().out == "group.version\t0-1\t1\ntransaction.version\t0-2\t2\n"
        assert await ran_on(target, features, "describe", "--node", "0", "--json") is None
        assert json.loads(capsys.readouterr().out) == [
            {"name": "group.version", "supported_min": 0, "supported_max": 1, "finalized": 1},
            {"name": "transaction.version", "supported_min": 0, "supported_max": 2, "finalized": 2},
        ]
        assert await ran_on(target, features, "update", "group.version=1", "--validate-only") is None
        assert capsys.readouterr().out == "group.version would be finalized at 1\n"
        error = await ran_on(target, features, "update", "group.version=0", "--downgrade", "safe")
        assert isinstance(error, BrokerError)
        assert "is not taken back" in str(error)


@pytest.mark.parametrize("text", ["group.version", "=1", "group.version=", "group.version=-1", "group.version=one"])
def test_a_level_is_a_name_and_a_number(text: str) -> None:
    done = CliRunner().invoke(features, ["update", text, "-b", "localhost:1"])
    assert done.exit_code == click.UsageError.exit_code
    assert "NAME=LEVEL" in done.output
