"""SASL by raw conversations with our broker and with Apache Kafka: the same codes, words and ends, but for some."""

from collections.abc import Callable, Generator
from typing import Final

import pytest

from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from tests.compat.sasl_brokers import (
    ALICE,
    PASSWORD,
    Address,
    Conversation,
    bearer,
    kafka,
    our_broker,
    plain,
    unsecured,
    upsertion,
)

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.java, pytest.mark.slow]

Talk = Callable[[Conversation], None]
FIRST: Final = b"n,,n=alice,r=x"


def logged_in(conversation: Conversation) -> None:
    conversation.shake("PLAIN")
    conversation.token(plain(ALICE, PASSWORD))


def by_token(token: bytes, mechanism: str = "PLAIN") -> Talk:
    def talk(conversation: Conversation) -> None:
        conversation.shake(mechanism)
        conversation.token(token)
        conversation.metadata()

    return talk


def first_message(conversation: Conversation) -> None:
    conversation.shake("SCRAM-SHA-256")
    conversation.token(FIRST)


def refused_token(token: bytes) -> Talk:
    def talk(conversation: Conversation) -> None:
        conversation.shake("OAUTHBEARER")
        conversation.token(token)
        conversation.token(b"\1")
        conversation.metadata()

    return talk


def versions(conversation: Conversation) -> None:
    conversation.ask(ApiVersionsRequest(), 0, lambda answer: answer.error_code)


def twice_versions(conversation: Conversation) -> None:
    versions(conversation)
    versions(conversation)
    logged_in(conversation)


def request_first(conversation: Conversation) -> None:
    conversation.metadata()


def token_first(conversation: Conversation) -> None:
    conversation.token(plain(ALICE, PASSWORD))


def handshake_again(conversation: Conversation) -> None:
    logged_in(conversation)
    conversation.shake("PLAIN")
    conversation.metadata()


def token_again(conversation: Conversation) -> None:
    logged_in(conversation)
    conversation.token(plain(ALICE, PASSWORD))
    conversation.metadata()


def request_behind_handshake(conversation: Conversation) -> None:
    conversation.shake("PLAIN")
    conversation.metadata()


def handshake_twice(conversation: Conversation) -> None:
    conversation.shake("PLAIN")
    conversation.shake("PLAIN")


def raw(token: bytes) -> Talk:
    def talk(conversation: Conversation) -> None:
        conversation.shake("PLAIN", 0)
        conversation.raw(token)
        conversation.metadata()

    return talk


def users(conversation: Conversation) -> None:
    """APIs 50 and 51, with their errors."""
    logged_in(conversation)
    both = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="nobody", mechanism=1), ScramCredentialDeletion(name="", mechanism=1)],
        upsertions=[upsertion("SCRAM-SHA-256", "carol"), upsertion("SCRAM-SHA-512", "dave")],
    )
    both.upsertions[1].iterations = 4095
    for request in (
        both,
        AlterUserScramCredentialsRequest(
            upsertions=[upsertion("SCRAM-SHA-256", "erin"), upsertion("SCRAM-SHA-512", "erin")]
        ),
    ):
        conversation.ask(
            request,
            0,
            lambda answer: sorted((each.user, each.error_code, each.error_message) for each in answer.results),
        )
    for names in (["alice", "nobody", "x", "x"], []):
        asked = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
        conversation.ask(
            asked,
            0,
            lambda answer: sorted(
                (
                    each.user,
                    each.error_code,
                    each.error_message,
                    sorted((info.mechanism, info.iterations) for info in each.credential_infos),
                )
                for each in answer.results
            ),
        )
    conversation.ask(
        AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="carol", mechanism=1)]),
        0,
        lambda answer: [(each.user, each.error_code, each.error_message) for each in answer.results],
    )


TALKS: Final[dict[str, Talk]] = {
    "plain": by_token(plain(ALICE, PASSWORD)),
    "plain, as himself": by_token(plain(ALICE, PASSWORD, ALICE)),
    "plain, wrong password": by_token(plain(ALICE, "wrong")),
    "plain, nobody": by_token(plain("nobody", "wrong")),
    "plain, as somebody else": by_token(plain(ALICE, PASSWORD, "bob")),
    "plain, no user": by_token(plain("", PASSWORD)),
    "plain, no password": by_token(plain(ALICE, "")),
    "plain, one part": by_token(b"alice"),
    "plain, four parts": by_token(b"\0alice\0x\0y"),
    "plain, empty": by_token(b""),
    "scram": lambda conversation: conversation.scram(ALICE, PASSWORD),
    "scram 512": lambda conversation: conversation.scram(ALICE, PASSWORD, "SCRAM-SHA-512"),
    "scram, wrong password": lambda conversation: conversation.scram(ALICE, "wrong"),
    "scram, nobody": lambda conversation: conversation.scram("nobody", "wrong"),
    "scram, garbage": by_token(b"garbage", "SCRAM-SHA-256"),
    "scram, channel binding": by_token(b"p=tls-unique,,n=alice,r=x", "SCRAM-SHA-256"),
    "scram, as somebody else": by_token(b"n,a=bob,n=alice,r=x", "SCRAM-SHA-256"),
    "scram, first message": first_message,
    "token": by_token(bearer(unsecured()), "OAUTHBEARER"),
    "token, expired": refused_token(bearer(unsecured(lives_s=-3600))),
    "token, none": refused_token(bearer("x")),
    "token, garbage": by_token(b"garbage", "OAUTHBEARER"),
    "no such mechanism": lambda conversation: conversation.shake("GSSAPI"),
    "a mechanism in lower case": lambda conversation: conversation.shake("plain", 0),
    "versions twice": twice_versions,
    "a request first": request_first,
    "a token first": token_first,
    "handshake again": handshake_again,
    "token again": token_again,
    "handshake twice": handshake_twice,
    "a request behind the handshake": request_behind_handshake,
    "raw": raw(plain(ALICE, PASSWORD)),
    "raw, wrong": raw(plain(ALICE, "wrong")),
    "users": users,
}
DIFFERENCES: Final = {
    "scram, nobody": "Kafka refuses who does not exist at the first message, by which it tells who does",
    "versions twice": "Kafka closes where a client asks for versions twice; they are no secret",
    "handshake twice": "Kafka answers ILLEGAL_SASL_STATE and closes; here it is closed",
    "a request behind the handshake": "Kafka answers in the shape of the request and closes; here it is closed",
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Generator[Address]:
    with our_broker(tmp_path_factory.mktemp("sasl")) as address:
        yield address


@pytest.fixture(scope="module")
def theirs() -> Generator[Address]:
    with kafka() as address:
        yield address


@pytest.mark.parametrize("name", TALKS)
def test_the_same_conversation_goes_the_same_way(name: str, ours: Address, theirs: Address) -> None:
    traces = list[list[object]]()
    for address in (ours, theirs):
        conversation = Conversation(address)
        TALKS[name](conversation)
        conversation.close()
        traces.append(conversation.trace)
    if name in DIFFERENCES:
        assert traces[0] != traces[1], f"no difference any more: {DIFFERENCES[name]}"
    else:
        assert traces[0] == traces[1]
