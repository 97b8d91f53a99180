"""`odradek quotas`, on a scripted cluster, and command lines that are refused before anything is asked."""

import json

import pytest
from click.testing import CliRunner

from odradek.client.admin.quotas import QuotaEntity
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.quotas import number, quotas
from tests.client.admin_handlers import serve_admin
from tests.client.commands.scripted import ran
from tests.client.scripted_broker import scripted_cluster
from tests.client.security_handlers import serve_security

Printed = pytest.CaptureFixture[str]
ALICE = QuotaEntity.of(user="alice")


@pytest.mark.virtual_time
async def test_quotas_are_added_listed_and_removed(capsys: Printed) -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        secured = serve_security(scripted)
        values = ("producer_byte_rate=1000000", "request_percentage=12.5")
        assert await ran(scripted, quotas, "add", "--user", "alice", *values) is None
        assert capsys.readouterr().out == (
            "user alice: producer_byte_rate is 1000000\nuser alice: request_percentage is 12.5\n"
        )
        options = ("--user-default", "--client-id", "c", "consumer_byte_rate=1", "--validate-only")
        assert await ran(scripted, quotas, "add", *options) is None
        assert capsys.readouterr().out == "user <default> client-id c: consumer_byte_rate would be 1\n"
        assert await ran(scripted, quotas, "add", "--ip-default", "connection_creation_rate=10") is None
        capsys.readouterr()
        assert await ran(scripted, quotas, "list") is None
        assert capsys.readouterr().out == (
            "-\t-\t<default>\tconnection_creation_rate\t10\n"
            "alice\t-\t-\tproducer_byte_rate\t1000000\nalice\t-\t-\trequest_percentage\t12.5\n"
        )
        assert await ran(scripted, quotas, "list", "--user", "alice", "--json") is None
        assert json.loads(capsys.readouterr().out) == [
            {"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1000000.0, "request_percentage": 12.5}}
        ]
        assert await ran(scripted, quotas, "remove", "--user", "alice", "producer_byte_rate") is None
        assert capsys.readouterr().out == "user alice: producer_byte_rate removed\n"
        assert secured.quotas[ALICE] == {"request_percentage": 12.5}


@pytest.mark.virtual_time
async def test_all_quotas_of_one_are_those_of_nobody_else() -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        secured = serve_security(scripted)
        other = QuotaEntity.of(user="alice", client_id="c")
        secured.quotas |= {each: {"request_percentage": 1.0, "producer_byte_rate": 1.0} for each in (ALICE, other)}
        assert await ran(scripted, quotas, "remove", "--user", "alice", "--all", "--yes") is None
        assert not secured.quotas[ALICE]
        assert len(secured.quotas[other]) == 2


@pytest.mark.virtual_time
async def test_what_is_not_there_is_not_removed() -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        secured = serve_security(scripted)
        secured.quotas[ALICE] = {"request_percentage": 1.0}
        for options in (
            ("--user", "alice", "request_percentage", "producer_byte_rate"),
            ("--user", "bob", "request_percentage"),
            ("--user", "bob", "--all"),
        ):
            assert isinstance(await ran(scripted, quotas, "remove", *options), CommandFailed)
        assert secured.quotas[ALICE] == {"request_percentage": 1.0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "request_percentage=1"), "whose quotas?"),
        (("add", "--user", "", "request_percentage=1"), "it is empty, which names nothing"),
        (("add", "--user", "a", "--user-default", "request_percentage=1"), "exclude each other"),
        (("add", "--user", "a", "--ip", "10.0.0.7", "request_percentage=1"), "an address has quotas of its own"),
        (("add", "--user", "a"), "Missing argument"),
        (("add", "--user", "a", "request_percentage"), "not of the form NAME=NUMBER"),
        (("add", "--user", "a", "request_percentage=much"), "not of the form NAME=NUMBER"),
        (("add", "--user", "a", "request_percentage=nan"), "not of the form NAME=NUMBER"),
        (("add", "--user", "a", "request_percentage=inf"), "not of the form NAME=NUMBER"),
        (("add", "--user", "a", "=1"), "not of the form NAME=NUMBER"),
        (("remove", "--user", "a"), "name the quotas to remove, or give --all"),
        (("remove", "--user", "a", "request_percentage", "--all"), "name the quotas to remove, or give --all"),
        (("remove", "--all", "--yes"), "whose quotas?"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(quotas, [*arguments, "-b", "localhost:1"])
    assert done.exit_code == 2
    assert said in done.output


def test_numbers_have_a_fraction_where_they_need_one() -> None:
    assert [number(value) for value in (1e6, 0.5, -1.0)] == ["1000000", "0.5", "-1"]
