"""DescribeUserScramCredentials: who has what, Kafka's errors user by user, and nothing that helps to guess."""

from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from tests.broker.api.scram_requests import altered, upsertion
from tests.broker.support import ask, running_broker


async def described(context: Context, *users: str, null: bool = False) -> list[tuple[str, int, list[tuple[int, int]]]]:
    request = DescribeUserScramCredentialsRequest(users=None if null else [UserName(name=user) for user in users])
    answer = await ask(context, request, 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    return [
        (each.user, each.error_code, [(info.mechanism, info.iterations) for info in each.credential_infos])
        for each in answer.results
    ]


async def test_all_or_those_who_are_named() -> None:
    async with running_broker() as context:
        for null in (True, False):
            assert await described(context, null=null) == []
        await altered(context, upsertion("alice"), upsertion("bob", 2, iterations=8192))
        await altered(context, upsertion("alice", 2, iterations=5000))
        alice, bob = ("alice", 0, [(1, 4096), (2, 5000)]), ("bob", 0, [(2, 8192)])
        for null in (True, False):
            assert sorted(await described(context, null=null)) == [alice, bob]
        assert await described(context, "bob") == [bob]
        assert await described(context, "bob", "alice") == [bob, alice]


async def test_who_does_not_exist_or_is_named_twice_has_an_error_of_his_own() -> None:
    async with running_broker() as context:
        await altered(context, upsertion("alice"))
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in ("x", "alice", "y", "y")])
        answer = await ask(context, request, 0)
        assert [(each.user, each.error_code, each.error_message) for each in answer.results] == [
            ("x", ErrorCode.RESOURCE_NOT_FOUND, "Attempt to describe a user credential that does not exist: x"),
            ("alice", 0, ""),
            (
                "y",
                ErrorCode.DUPLICATE_RESOURCE,
                "Cannot describe SCRAM credentials for the same user twice in a single request: y",
            ),
        ]
        assert answer.results[0].credential_infos == answer.results[2].credential_infos == []
