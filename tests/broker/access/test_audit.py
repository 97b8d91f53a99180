"""The lines of the audit: Kafka's words, and nothing of a client's that could be taken for a line of ours."""

import logging

import pytest

from odradek.broker.access.audit import SHOWN_MAX, shown, tell, tell_change
from odradek.broker.access.authorizer import Decision, Ground
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import Resource, ResourceType
from tests.broker.access.rules import acl, deny

DENIED = Decision(False, Ground.NO_ACL)


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kafka.authorizer.logger")


def test_a_refusal_is_told_at_info(caplog: pytest.LogCaptureFixture) -> None:
    resource = Resource(ResourceType.TRANSACTIONAL_ID, "payments")
    tell("User:alice", "10.0.0.1", Operation.WRITE, resource, "InitProducerId", DENIED)
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.INFO, "kafka.authorizer.logger")
    assert record.getMessage() == (
        "Principal = User:alice is Denied operation = WRITE from host = 10.0.0.1 on resource = "
        "TransactionalId:LITERAL:payments for request = InitProducerId with resourceRefCount = 1 based on rule "
        "DefaultDeny"
    )


def test_a_grant_is_told_at_debug_with_its_rule(caplog: pytest.LogCaptureFixture) -> None:
    decision = Decision(True, Ground.ACL, acl())
    tell("User:alice", "10.0.0.1", Operation.READ, Resource(ResourceType.TOPIC, "orders"), "Fetch", decision)
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert " is Allowed " in record.getMessage()
    assert record.getMessage().endswith(f"based on rule MatchingAcl(acl={acl()})")


def test_what_a_client_names_writes_no_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    name = "x\n2026-11-28 INFO all is well\x1b[31m"
    tell(f"User:{name}", name, Operation.READ, Resource(ResourceType.GROUP, name), name, DENIED)
    tell_change(f"User:{name}", name, "created", [acl(name=name, principal=f"User:{name}")])
    for record in caplog.records:
        assert "\n" not in record.getMessage()
        assert "\x1b" not in record.getMessage()
        assert r"x\n2026-11-28 INFO all is well\x1b[31m" in record.getMessage()


def test_names_are_cut() -> None:
    assert shown("a" * SHOWN_MAX) == "a" * SHOWN_MAX
    assert shown("a" * 100_000) == "a" * SHOWN_MAX + "…"
    assert len(shown("\0" * 100_000)) < 5 * SHOWN_MAX
    assert shown("Größe") == "Größe"


def test_changes_are_told_at_info_with_who_made_them(caplog: pytest.LogCaptureFixture) -> None:
    tell_change("User:admin", "10.0.0.9", "deleted", [acl(), deny(principal="User:*")])
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (
            logging.INFO,
            "User:admin from host 10.0.0.9 has deleted an ACL: ALLOW READ on TOPIC orders (LITERAL) to User:alice from "
            "host *",
        ),
        (
            logging.INFO,
            "User:admin from host 10.0.0.9 has deleted an ACL: DENY READ on TOPIC orders (LITERAL) to User:* from "
            "host *",
        ),
    ]
