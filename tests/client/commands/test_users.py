"""`odradek users`, on a scripted cluster: passwords come from files and standard input, never from the command line."""

import io
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands import users as users_module
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.users import users
from odradek.client.errors.client_errors import BrokerError
from odradek.protocol.errors import ErrorCode
from tests.client.admin_handlers import serve_admin
from tests.client.commands.scripted import ran
from tests.client.scripted_broker import scripted_cluster
from tests.client.security_handlers import serve_security

Printed = pytest.CaptureFixture[str]
SECRET = "pencil-5f0c"  # noqa: S105


@pytest.fixture
def password_file(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\nanother line\n")
    path.chmod(0o600)
    return str(path)


@pytest.mark.virtual_time
async def test_users_are_added_listed_and_removed(capsys: Printed, password_file: str) -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        secured = serve_security(scripted)
        both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512", "--iterations", "8192")
        assert await ran(scripted, users, "add", "alice", *both, "--password-file", password_file) is None
        assert capsys.readouterr().out == "alice has a password for SCRAM-SHA-256 and SCRAM-SHA-512\n"
        assert secured.proves("alice", 1, SECRET)
        assert secured.proves("alice", 2, SECRET)
        assert await ran(scripted, users, "list") is None
        assert capsys.readouterr().out == "alice\tSCRAM-SHA-256\t8192\nalice\tSCRAM-SHA-512\t8192\n"
        assert await ran(scripted, users, "remove", "alice", "--mechanism", "SCRAM-SHA-256", "--yes") is None
        out = capsys.readouterr()
        assert out.out == "alice has no password for SCRAM-SHA-256 any more\n"
        assert "stay" in out.err
        assert await ran(scripted, users, "list", "alice", "--json") is None
        assert json.loads(capsys.readouterr().out) == [
            {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 8192}
        ]
        assert await ran(scripted, users, "remove", "alice", "--yes") is None
        assert secured.users == {}


@pytest.mark.virtual_time
async def test_a_password_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        secured = serve_security(scripted)
        for options in ((), ("--password-file", "-")):
            monkeypatch.setattr(sys, "stdin", io.StringIO(f" {SECRET} \n"))
            assert await ran(scripted, users, "add", "alice", *options) is None
            assert secured.proves("alice", 2, f" {SECRET} ")


@pytest.mark.virtual_time
async def test_who_is_not_there_is_told(capsys: Printed) -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        serve_security(scripted)
        error = await ran(scripted, users, "list", "bob")
        assert isinstance(error, ItemsFailed)
        assert capsys.readouterr().out == ""
        error = await ran(scripted, users, "remove", "bob", "--yes")
        assert isinstance(error, BrokerError)
        assert error.code is ErrorCode.RESOURCE_NOT_FOUND


@pytest.mark.virtual_time
async def test_a_stopped_store_is_written_by_who_can(
    capsys: Printed, password_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    async def add_offline(*values: object) -> str:
        asked.append(values)
        return "stored"

    with scripted_cluster() as scripted:
        monkeypatch.setattr(users_module.users, "add_offline", None)
        options = ("add", "alice", "--data-dir", "data", "--password-file", password_file)
        assert isinstance(await ran(scripted, users, *options), CommandFailed)
        monkeypatch.setattr(users_module.users, "add_offline", add_offline)
        assert await ran(scripted, users, *options) is None
        assert asked == [("data", "alice", ["SCRAM-SHA-512"], SECRET, 4096)]
        assert capsys.readouterr().out == "stored\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "alice", SECRET), "unexpected extra argument"),
        (("add", "alice", "--password", SECRET), "No such option"),
        (("add", ""), "it is empty, which names nothing"),
        (("add", "alice", "--mechanism", "PLAIN"), "'PLAIN' is not one of"),
        (("add", "alice", "--iterations", "4095"), "4095 is not in the range"),
        (("add", "alice", "--iterations", "16385"), "16385 is not in the range"),
        (("remove",), "Missing argument"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(users, [*arguments, "-b", "localhost:1"])
    assert done.exit_code == 2
    assert said in done.output
