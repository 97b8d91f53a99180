"""SCRAM with the credentials of a cluster: who comes in, and that who does not exist looks as who does."""

import re
from base64 import b64decode

import pytest

from odradek.broker.authentication import scram
from odradek.broker.authentication.mechanism import Refused
from odradek.broker.authentication.plain import OTHER_AUTHORIZATION
from odradek.broker.authentication.scram import NO_TOKENS, ScramExchange
from odradek.broker.cluster.scram_credentials import ScramCredentials
from odradek.protocol.scram import ALGORITHMS, ScramClient, salted_password
from odradek.protocol.scram_server import credential_of, made_up
from tests.broker.authentication.listeners import ALICE, CREDENTIALS, PASSWORD, SALT

NONCE = "server"


async def authenticated(mechanism: str, user: str, password: str, credentials: ScramCredentials = CREDENTIALS) -> str:
    """The user that comes in. Raises Refused."""
    client, exchange = ScramClient(mechanism, user, "client"), ScramExchange(mechanism, credentials, NONCE)
    first = await exchange.respond(client.first())
    assert first.authenticated is None
    answer = await exchange.respond(client.final(salted_password(mechanism, password, client.challenge(first.token))))
    client.verify(answer.token)
    assert answer.authenticated is not None
    return answer.authenticated.user


@pytest.mark.parametrize("mechanism", sorted(ALGORITHMS))
async def test_a_user_with_the_password_comes_in(mechanism: str) -> None:
    assert await authenticated(mechanism, ALICE, PASSWORD) == ALICE


@pytest.mark.parametrize("name", ["a,b", "a=b", "=2C", ",=,", "=3D2C"])
async def test_names_with_commas_and_equal_signs_are_themselves(name: str) -> None:
    credential = credential_of("SCRAM-SHA-256", PASSWORD, SALT, 4096)
    credentials = ScramCredentials({"SCRAM-SHA-256": {name: credential}}, secret=b"x")
    assert await authenticated("SCRAM-SHA-256", name, PASSWORD, credentials) == name
    for other in (name.replace(",", "=2C"), name.replace("=2C", ","), name + ","):
        if other != name:
            with pytest.raises(Refused):
                await authenticated("SCRAM-SHA-256", other, PASSWORD, credentials)


@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [
        ("SCRAM-SHA-256", ALICE, "wrong"),
        ("SCRAM-SHA-256", "nobody", PASSWORD),
        ("SCRAM-SHA-256", "bob", "of bob"),  # who has a credential for the other one
        ("SCRAM-SHA-512", "ALICE", PASSWORD),
    ],
)
async def test_anybody_else_is_refused_at_the_end_with_the_same_words(mechanism: str, user: str, password: str) -> None:
    with pytest.raises(Refused, match="the client does not know the password") as caught:
        await authenticated(mechanism, user, password)
    assert (caught.value.told, caught.value.user) == (None, user)


async def test_who_does_not_exist_is_asked_the_same_each_time_and_on_every_broker() -> None:
    """A salt that is another one each time would tell that the user is made up."""

    async def challenge(user: str, secret: bytes = b"one", nonce: str = "x") -> tuple[bytes, int]:
        exchange = ScramExchange("SCRAM-SHA-256", ScramCredentials({}, secret), nonce)
        answer = await exchange.respond(ScramClient("SCRAM-SHA-256", user, "client").first())
        found = re.fullmatch(r"r=client\w+,s=([^,]+),i=([0-9]+)", answer.token.decode())
        assert found is not None
        return b64decode(found[1]), int(found[2])

    assert await challenge("nobody") == await challenge("nobody", nonce="y")
    assert await challenge("nobody") != await challenge("nobody else")
    assert await challenge("nobody") != await challenge("nobody", b"other")
    salt, iterations = await challenge("nobody")
    assert iterations == 4096
    assert len(salt) in range(22, 27)


async def test_everybody_costs_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made up is made up for those who exist, too."""
    made: list[str] = []

    def counted(mechanism: str, user: str, secret: bytes) -> object:
        made.append(user)
        return made_up(mechanism, user, secret)

    monkeypatch.setattr(scram, "made_up", counted)
    for user in (ALICE, "nobody"):
        await ScramExchange("SCRAM-SHA-256", CREDENTIALS, NONCE).respond(
            ScramClient("SCRAM-SHA-256", user, "x").first()
        )
    assert made == [ALICE, "nobody"]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (b"n,a=bob,n=alice,r=x", OTHER_AUTHORIZATION),
        (b"n,,n=alice,r=x,tokenauth=true", NO_TOKENS),
        (b"nonsense", None),
        (b"", None),
    ],
)
async def test_what_is_refused_at_once(first: bytes, told: str | None) -> None:
    with pytest.raises(Refused) as caught:
        await ScramExchange("SCRAM-SHA-256", CREDENTIALS, NONCE).respond(first)
    assert caught.value.told == told


async def test_an_authorization_id_may_be_the_user() -> None:
    exchange = ScramExchange("SCRAM-SHA-256", CREDENTIALS, NONCE)
    assert (await exchange.respond(b"n,a=alice,n=alice,r=x")).token.startswith(b"r=xserver,")


async def test_without_the_clusters_secret_nobody_comes_in() -> None:
    """Else a user who does not exist could be told from one who does."""
    credentials = ScramCredentials(CREDENTIALS.users, secret=None)
    for user in (ALICE, "nobody"):
        with pytest.raises(Refused, match="no secret"):
            await authenticated("SCRAM-SHA-256", user, PASSWORD, credentials)


async def test_a_credential_below_the_lowest_number_of_iterations_is_not_used() -> None:
    weak = CREDENTIALS.users["SCRAM-SHA-256"][ALICE]._replace(iterations=1)
    with pytest.raises(Refused, match="1 iterations"):
        await authenticated(
            "SCRAM-SHA-256", ALICE, PASSWORD, ScramCredentials({"SCRAM-SHA-256": {ALICE: weak}}, secret=b"x")
        )
