"""AlterUserScramCredentials: what is stored, Kafka's refusals user by user, and who is told to have changed what."""

import logging

import pytest

from odradek.broker.access.access import Access, Asker
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import Resource
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import OPERATIONS_MAX, Txn
from odradek.protocol.errors import ErrorCode
from odradek.protocol.scram import Challenge, salted_password
from odradek.protocol.scram_server import credential_from_salted
from tests.broker.api.scram_requests import SALT, altered, deletion, upsertion
from tests.broker.support import running_broker

OK = (0, None)
NONE = ErrorCode.NONE


async def test_what_is_stored_follows_from_the_password_and_is_there_at_once() -> None:
    async with running_broker() as context:
        assert context.metadata.image.scram is None
        assert await altered(context, upsertion("alice"), upsertion("b/ob", 2, iterations=16384)) == [
            ("alice", *OK),
            ("b/ob", *OK),
        ]
        scram = context.metadata.image.scram
        assert scram is not None
        for mechanism, user, iterations in (("SCRAM-SHA-256", "alice", 4096), ("SCRAM-SHA-512", "b/ob", 16384)):
            salted = salted_password(mechanism, "secret", Challenge(SALT, iterations))
            assert scram.find(mechanism, user) == credential_from_salted(mechanism, SALT, salted, iterations)
        assert await altered(context, upsertion("alice", said="new"), deletion("b/ob", 2)) == [
            ("b/ob", *OK),
            ("alice", *OK),
        ]
        now = context.metadata.image.scram
        assert now is not None
        assert now.find("SCRAM-SHA-256", "alice") not in (None, scram.find("SCRAM-SHA-256", "alice"))
        assert now.of_user("b/ob") == {}


async def test_one_user_may_have_both_mechanisms() -> None:
    async with running_broker() as context:
        for mechanism in (1, 2):
            await altered(context, upsertion("alice", mechanism))
        assert await altered(context, deletion("alice", 1)) == [("alice", *OK)]
        assert context.metadata.image.scram is not None
        assert list(context.metadata.image.scram.of_user("alice")) == ["SCRAM-SHA-512"]


@pytest.mark.parametrize(
    ("alteration", "code", "message"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("x", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("x", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (deletion("x", -1), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("x", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("x", iterations=-1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("x", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (deletion("x"), ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
        (deletion("alice", 2), ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
    ],
)
async def test_what_is_refused_leaves_the_others_alone(alteration: object, code: ErrorCode, message: str) -> None:
    async with running_broker() as context:
        await altered(context, upsertion("alice"))
        before = context.metadata.image.scram
        assert before is not None
        results = await altered(context, alteration, upsertion("bob"))  # type: ignore[arg-type]
        assert {user: (found, said) for user, found, said in results} == {
            getattr(alteration, "name"): (code, message),  # noqa: B009 - of either kind
            "bob": OK,
        }
        after = context.metadata.image.scram
        assert after is not None
        assert set(after.users["SCRAM-SHA-256"]) == {"alice", "bob"}


async def test_a_user_who_stands_there_twice_is_refused_by_whichever_mechanism() -> None:
    async with running_broker() as context:
        await altered(context, upsertion("alice"))
        message = "A user credential cannot be altered twice in the same request"
        for twice in (
            (upsertion("alice"), upsertion("alice")),
            (upsertion("alice", 1), upsertion("alice", 2)),
            (deletion("alice"), upsertion("alice", 2)),
            (deletion("alice"), deletion("alice"), upsertion("alice")),
        ):
            assert await altered(context, *twice) == [("alice", ErrorCode.DUPLICATE_RESOURCE, message)]
        first_counts = await altered(context, deletion("nobody"), upsertion("nobody"))
        assert [code for _, code, _ in first_counts] == [ErrorCode.RESOURCE_NOT_FOUND]
        assert context.metadata.image.scram is not None
        assert list(context.metadata.image.scram.of_user("alice")) == ["SCRAM-SHA-256"]


async def test_more_than_fit_into_a_commit_are_stored_in_several() -> None:
    async with running_broker() as context:
        users = [f"user-{number}" for number in range(OPERATIONS_MAX * 2)]
        assert await altered(context, *(upsertion(user) for user in users)) == [(user, *OK) for user in users]
        assert await altered(context, *(deletion(user) for user in users)) == [(user, *OK) for user in users]
        assert await altered(context) == []


async def test_a_store_that_does_not_answer_is_an_error_for_whom_it_concerns() -> None:
    class Failing(MemoryStore):
        has_failed = False

        async def commit(self, txn: Txn) -> int:
            if any("/scram/" in key for key in txn.put) and self.has_failed:
                raise OSError("no space")
            self.has_failed = True
            return await super().commit(txn)

    async with running_broker(store=Failing()) as context:
        results = await altered(context, upsertion("alice"), deletion("nobody"))
        assert {user: code for user, code, _ in results} == {
            "nobody": ErrorCode.RESOURCE_NOT_FOUND,
            "alice": ErrorCode.KAFKA_STORAGE_ERROR,
        }


async def test_who_may_not_is_told_so_for_each_user_and_changes_nothing() -> None:
    class Nothing(Access):
        is_enforced = True

        def permits(self, asker: Asker, operation: Operation, resource: Resource, *, logs_refusal: bool = True) -> bool:
            return False

    async with running_broker(access=Nothing()) as context:
        results = await altered(context, upsertion("b"), deletion("a"), upsertion("a", 2))
        assert [(user, code) for user, code, _ in results] == [
            ("a", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            ("b", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ]
        assert context.metadata.image.scram is None


async def test_each_change_is_told_with_who_made_it_and_nothing_secret(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker() as context:
        with caplog.at_level(logging.INFO, logger="kafka.authorizer.logger"):
            await altered(context, upsertion("al\nice"), upsertion("x", iterations=1))
            await altered(context, deletion("al\nice"))
    lines = [record.getMessage() for record in caplog.records if record.name == "kafka.authorizer.logger"]
    who = "'User:ANONYMOUS' from host '' has"
    assert lines == [
        f"{who} set, with 4096 iterations, the credential of user 'al\\nice' for SCRAM-SHA-256",
        f"{who} deleted the credential of user 'al\\nice' for SCRAM-SHA-256",
    ]
