"""Admin's calls about users with passwords, on a scripted cluster in memory and virtual time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.scram_users import ScramCredential, ScramDeletion, ScramMechanism, ScramUpsertion
from odradek.client.errors.base import ClientError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from tests.client.admin_handlers import serve_admin
from tests.client.broker_faults import disconnect_after, edited
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.security_handlers import Secured, serve_security

pytestmark = pytest.mark.virtual_time

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
SECRET = "pencil-5f0c"  # noqa: S105


@asynccontextmanager
async def asking() -> AsyncGenerator[tuple[Admin, ScriptedCluster, Secured]]:
    with scripted_cluster(brokers=2) as scripted:
        serve_admin(scripted)
        secured = serve_security(scripted)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment) as admin:
            yield admin, scripted, secured


async def test_passwords_are_set_described_and_taken_away() -> None:
    async with asking() as (admin, _, secured):
        await admin.alter_user_scram_credentials(
            [
                ScramUpsertion("alice", SECRET),
                ScramUpsertion("alice", SECRET, SHA_256, 8192),
                ScramUpsertion("bob", "b"),
            ]
        )
        assert secured.proves("alice", SHA_512, SECRET)
        assert secured.proves("alice", SHA_256, SECRET)
        alice = (ScramCredential(SHA_256, 8192), ScramCredential(SHA_512, 4096))
        bob = (ScramCredential(SHA_512, 4096),)
        assert await admin.describe_user_scram_credentials() == {"alice": alice, "bob": bob}
        assert await admin.describe_user_scram_credentials(["bob"]) == {"bob": bob}
        assert await admin.describe_user_scram_credentials([]) == {}
        await admin.alter_user_scram_credentials([ScramDeletion("alice", SHA_256)])
        assert await admin.describe_user_scram_credentials(["alice"]) == {"alice": alice[1:]}


async def test_salts_are_new_each_time_unless_they_are_given() -> None:
    async with asking() as (admin, _, secured):
        salts: set[bytes] = set()
        for _ in range(3):
            await admin.alter_user_scram_credentials([ScramUpsertion("alice", SECRET)])
            salts.add(secured.users["alice", SHA_512][1])
        assert len(salts) == 3
        assert all(len(salt) >= 16 for salt in salts)
        await admin.alter_user_scram_credentials([ScramUpsertion("alice", SECRET, salt=b"mine")])
        assert secured.users["alice", SHA_512][1] == b"mine"


async def test_the_password_itself_is_never_sent() -> None:
    async with asking() as (admin, scripted, _):
        await admin.alter_user_scram_credentials([ScramUpsertion("alice", SECRET)])
        (request,) = scripted.requests(AlterUserScramCredentialsRequest)
        (sent,) = request.upsertions
        assert SECRET.encode() not in sent.salt + sent.salted_password
        assert SECRET not in repr(request)
        assert sent.salted_password.hex() not in repr(request)


async def test_the_controller_is_asked_and_followed() -> None:
    async with asking() as (admin, scripted, secured):
        scripted.controller_id = 1
        await admin.alter_user_scram_credentials([ScramUpsertion("alice", SECRET)])
        scripted.controller_id = 0
        await admin.alter_user_scram_credentials([ScramUpsertion("bob", SECRET)])
        assert secured.users.keys() == {("alice", SHA_512), ("bob", SHA_512)}


async def test_a_user_who_is_not_there_is_told_beside_the_others() -> None:
    async with asking() as (admin, _, _):
        await admin.alter_user_scram_credentials([ScramUpsertion("alice", SECRET)])
        with pytest.raises(ItemsFailed) as caught:
            await admin.describe_user_scram_credentials(["alice", "bob"])
        assert list(caught.value.results) == ["alice"]
        assert caught.value.errors["bob"].code is ErrorCode.RESOURCE_NOT_FOUND
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_user_scram_credentials([ScramDeletion("bob", SHA_512), ScramUpsertion("carol", SECRET)])
        assert list(caught.value.errors) == ["bob"]
        assert list(caught.value.results) == ["carol"]


async def test_errors_among_all_users_are_told_beside_the_others() -> None:
    async with asking() as (admin, scripted, _):
        await admin.alter_user_scram_credentials([ScramUpsertion("alice", SECRET), ScramUpsertion("bob", SECRET)])

        def fail(response: DescribeUserScramCredentialsResponse) -> None:
            response.results[0].error_code = ErrorCode.UNKNOWN_SERVER_ERROR

        scripted.on(DescribeUserScramCredentialsRequest, edited(fail))
        with pytest.raises(ItemsFailed) as caught:
            await admin.describe_user_scram_credentials()
        assert list(caught.value.errors) == ["alice"]
        assert list(caught.value.results) == ["bob"]


async def test_what_brokers_refuse_is_not_sent_and_shows_no_password() -> None:
    async with asking() as (admin, scripted, _):
        with pytest.raises(ClientError, match="4095 iterations") as caught:
            await admin.alter_user_scram_credentials([ScramUpsertion("alice", SECRET, iterations=4095)])
        assert SECRET not in str(caught.value)
        with pytest.raises(TypeError, match="have a tuple") as refused:
            await admin.alter_user_scram_credentials([("alice", SECRET)])  # type: ignore[list-item]
        assert SECRET not in str(refused.value)
        assert scripted.count(AlterUserScramCredentialsRequest) == 0


async def test_a_lost_answer_is_asked_for_again_with_the_same_salt() -> None:
    async with asking() as (admin, scripted, _):
        scripted.on(AlterUserScramCredentialsRequest, disconnect_after())
        await admin.alter_user_scram_credentials([ScramUpsertion("alice", SECRET)])
        first, second = scripted.requests(AlterUserScramCredentialsRequest)
        assert first.upsertions == second.upsertions
