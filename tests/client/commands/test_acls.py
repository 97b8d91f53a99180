"""`odradek acls`, on a scripted cluster, and command lines that are refused before anything is asked."""

import io
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from odradek.client.admin.acls import AclBinding, AclOperation, AclPatternType, AclPermission, AclResourceType
from odradek.client.admin.configs import ResourceType
from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands.acls import acls
from odradek.client.commands.failures import CommandFailed
from odradek.client.errors.client_errors import BrokerError
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from tests.client.admin_handlers import Served, serve_admin
from tests.client.commands.scripted import ran
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.security_handlers import Secured, serve_security

Printed = pytest.CaptureFixture[str]

READS = AclBinding(AclResourceType.TOPIC, "orders", "User:billing", AclOperation.READ)
DENIES = READS._replace(permission=AclPermission.DENY, operation=AclOperation.WRITE)
PREFIX = READS._replace(resource_name="ord", pattern_type=AclPatternType.PREFIXED)


@contextmanager
def secured_cluster() -> Generator[tuple[ScriptedCluster, Served, Secured]]:
    with scripted_cluster(brokers=2) as scripted:
        served = serve_admin(scripted)
        yield scripted, served, serve_security(scripted)


@pytest.mark.virtual_time
async def test_acls_are_added_listed_and_removed(capsys: Printed) -> None:
    with secured_cluster() as (scripted, _, secured):
        added = ("--topic", "orders", "--principal", "User:billing")
        assert await ran(scripted, acls, "add", *added, "--operation", "read") is None
        assert capsys.readouterr().out == "added: Allow User:billing Read on Topic orders from any host\n"
        assert await ran(scripted, acls, "add", *added, "--deny", "--operation", "WRITE", "--json") is None
        assert json.loads(capsys.readouterr().out)[0]["permission"] == "DENY"
        assert secured.acls == {READS, DENIES}
        assert await ran(scripted, acls, "list") is None
        assert capsys.readouterr().out == (
            "Topic\torders\tLiteral\tUser:billing\t*\tRead\tAllow\n"
            "Topic\torders\tLiteral\tUser:billing\t*\tWrite\tDeny\n"
        )
        assert await ran(scripted, acls, "remove", *added, "--yes") is None
        assert capsys.readouterr().out == "removed: Allow User:billing Read on Topic orders from any host\n"
        assert secured.acls == {DENIES}


@pytest.mark.virtual_time
async def test_a_list_is_narrowed_by_names_and_principals(capsys: Printed) -> None:
    with secured_cluster() as (scripted, _, secured):
        secured.acls |= {READS, PREFIX, READS._replace(principal="User:bob")}
        for options, count in (
            ((), 3),
            (("--topic", "orders"), 2),
            (("--topic", "orders", "--match"), 3),
            (("--topic", "orders", "--match", "--principal", "User:billing"), 2),
            (("--prefixed",), 1),
            (("--group", "orders"), 0),
        ):
            assert await ran(scripted, acls, "list", *options) is None
            assert len(capsys.readouterr().out.splitlines()) == count, options
        assert await ran(scripted, acls, "list", "--prefixed", "--json") is None
        assert json.loads(capsys.readouterr().out) == [
            {
                "resource_type": "TOPIC",
                "resource_name": "ord",
                "pattern_type": "PREFIXED",
                "principal": "User:billing",
                "host": "*",
                "operation": "READ",
                "permission": "ALLOW",
            }
        ]


@pytest.mark.virtual_time
async def test_nothing_is_removed_but_what_was_shown(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes between the look and the removal stays: each ACL is deleted by a filter of its own."""
    with secured_cluster() as (scripted, _, secured):
        secured.acls |= {READS, DENIES, PREFIX}
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        error = await ran(scripted, acls, "remove", "--topic", "orders")
        assert isinstance(error, CommandFailed)
        assert "--yes removes these 1" in str(error)
        assert capsys.readouterr().err == "Allow User:billing Read on Topic orders from any host\n"
        assert scripted.count(DeleteAclsRequest) == 0
        assert await ran(scripted, acls, "remove", "--topic", "orders", "--yes") is None
        (request,) = scripted.requests(DeleteAclsRequest)
        (sent,) = request.filters
        assert None not in (sent.resource_name_filter, sent.principal_filter, sent.host_filter)
        assert 1 not in (sent.resource_type_filter, sent.pattern_type_filter, sent.operation, sent.permission_type)
        assert secured.acls == {DENIES, PREFIX}
        nothing = await ran(scripted, acls, "remove", "--topic", "orders", "--yes")
        assert isinstance(nothing, CommandFailed)
        assert "Nothing was removed" in str(nothing)


@pytest.mark.virtual_time
async def test_a_no_removes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def no(text: str) -> str:
        return "n"

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with secured_cluster() as (scripted, _, secured):
        secured.acls.add(READS)
        monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
        monkeypatch.setattr("click.termui.visible_prompt_func", no)
        assert isinstance(await ran(scripted, acls, "remove", "--topic", "orders"), CommandFailed)
        assert secured.acls == {READS}


@pytest.mark.virtual_time
async def test_conveniences_are_taken_back_by_the_same_options() -> None:
    with secured_cluster() as (scripted, _, secured):
        options = ("--topic", "orders", "--group", "g", "--principal", "User:a", "--consumer", "--producer")
        assert await ran(scripted, acls, "add", *options) is None
        assert len(secured.acls) == 5
        assert await ran(scripted, acls, "remove", *options, "--yes") is None
        assert secured.acls == set()


@pytest.mark.virtual_time
async def test_without_an_authorizer_the_broker_says_so() -> None:
    with secured_cluster() as (scripted, _, secured):
        secured.has_authorizer = False
        options = ("--topic", "orders", "--principal", "User:a", "--operation", "read")
        assert isinstance(await ran(scripted, acls, "list"), BrokerError)
        assert isinstance(await ran(scripted, acls, "add", *options), ItemsFailed)
        assert isinstance(await ran(scripted, acls, "explain", *options), BrokerError)


@pytest.mark.virtual_time
async def test_why_somebody_may_not_write_is_explained(capsys: Printed) -> None:
    asked = ("explain", "--principal", "User:billing", "--operation", "Write", "--topic", "orders")
    with secured_cluster() as (scripted, served, secured):
        secured.acls |= {READS, DENIES, PREFIX}
        assert await ran(scripted, acls, *asked) is None
        assert capsys.readouterr().out == (
            "User:billing is denied: Write on Topic orders from a host that no ACL names\n"
            "because of: Deny User:billing Write on Topic orders from any host; a refusal counts before any grant\n"
            "other ACLs about it:\n"
            "  Allow User:billing Read on Topic prefix ord from any host: it is about Read\n"
            "  Allow User:billing Read on Topic orders from any host: it is about Read\n"
            "super.users of the brokers is not known here: who stands there may do everything\n"
        )
        assert isinstance(await ran(scripted, acls, *asked, "--check"), CommandFailed)
        capsys.readouterr()
        options = served.configs[ResourceType.BROKER, "0"]
        options |= {"super.users": "User:admin; User:billing", "allow.everyone.if.no.acl.found": "true"}
        assert await ran(scripted, acls, *asked, "--json", "--check") is None
        told = json.loads(capsys.readouterr().out)
        assert (told["allowed"], told["decided_by"]) == (True, "SUPER_USER")
        assert told["super_users"] == ["User:admin", "User:billing"]
        assert await ran(scripted, acls, "explain", *asked[1:-1], "payments", "--host", "10.0.0.7", "--json") is None


@pytest.mark.virtual_time
async def test_where_no_acl_is_the_option_of_the_brokers_is_named(capsys: Printed) -> None:
    asked = ("explain", "--principal", "User:a", "--operation", "read", "--group", "g")
    with secured_cluster() as (scripted, served, _):
        assert await ran(scripted, acls, *asked) is None
        assert "which is false unless set" in capsys.readouterr().out
        served.configs[ResourceType.BROKER, "0"]["allow.everyone.if.no.acl.found"] = "true"
        assert await ran(scripted, acls, *asked, "--check") is None
        assert "allow.everyone.if.no.acl.found of the broker is true" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("remove", "--topic", "", "--yes"), "it is empty, which names nothing"),
        (("remove", "--principal", "", "--yes"), "not of the form TYPE:NAME"),
        (("remove", "--host", "", "--topic", "t"), "it is empty, which names nothing"),
        (("remove", "--yes"), "which ACLs?"),
        (("remove", "--operation", "read", "--yes"), "which ACLs?"),
        (("add", "--topic", "t", "--principal", "billing", "--operation", "read"), "not of the form TYPE:NAME"),
        (("add", "--topic", "t", "--principal", "User:", "--operation", "read"), "not of the form TYPE:NAME"),
        (("add", "--topic", "t", "--principal", "User:a", "--operation", "fly"), "'fly' is none of"),
        (("add", "--topic", "t", "--principal", "User:a"), "to do what?"),
        (("list", "--match"), "--match is about names"),
        (("explain", "--principal", "User:a", "--operation", "read"), "one resource"),
        (("explain", "--principal", "User:a", "--operation", "all", "--topic", "t"), "never for All"),
        (("explain", "--principal", "User:a", "--topic", "t"), "Missing option '--operation'"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(acls, [*arguments, "-b", "localhost:1"])
    assert done.exit_code == 2
    assert said in done.output
