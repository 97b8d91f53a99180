"""SCRAM's server against the example of RFC 7677, our client, and everything that a client may lie."""

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.scram import ALGORITHMS, ITERATIONS_MIN, ScramClient, ScramError, salted_password
from odradek.protocol.scram_server import (
    ScramCredential,
    ScramServer,
    credential_of,
    made_up,
    read_client_first,
    salt_text,
    take_name,
)

MECHANISM = "SCRAM-SHA-256"
PASSWORD = "pencil"  # noqa: S105  (of the RFC)
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO"
OURS = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CREDENTIAL = credential_of(MECHANISM, PASSWORD, SALT, ITERATIONS_MIN)


def server(first: str = f"n,,n=user,r={NONCE}", credential: ScramCredential = CREDENTIAL) -> ScramServer:
    return ScramServer(MECHANISM, read_client_first(first.encode()), credential, OURS)


def exchange(
    user: str, password: str, credential: ScramCredential, mechanism: str = MECHANISM, client_nonce: str = "abc"
) -> str:
    """Our client with this server: the user that it has authenticated. Raises ScramError."""
    client = ScramClient(mechanism, user, client_nonce)
    first = read_client_first(client.first())
    running = ScramServer(mechanism, first, credential, "def")
    challenge = client.challenge(running.first())
    client.verify(running.final(client.final(salted_password(mechanism, password, challenge))))
    return first.user


def test_the_example_of_rfc_7677() -> None:
    running = server()
    assert running.first() == f"r={NONCE}{OURS},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    final = f"c=biws,r={NONCE}{OURS},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert running.final(final.encode()) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@given(
    st.sampled_from(sorted(ALGORITHMS)),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
)
def test_our_client_and_this_server_agree(mechanism: str, user: str, password: str) -> None:
    """For any names, `,` and `=` and `=2C` among them."""
    credential = credential_of(mechanism, password, b"salt", ITERATIONS_MIN)
    assert exchange(user, password, credential, mechanism) == user
    with pytest.raises(ScramError, match="does not know the password"):
        exchange(user, password + "x", credential, mechanism)


@pytest.mark.parametrize(
    ("written", "name"),
    [("a=2Cb", "a,b"), ("a=3Db", "a=b"), ("=3D2C", "=2C"), ("=2C=3D", ",="), ("plain", "plain"), ("é", "é")],
)
def test_names_with_commas_and_equal_signs(written: str, name: str) -> None:
    assert take_name(written) == name
    assert read_client_first(f"n,a={written},n={written},r=x".encode())[2:4] == (name, name)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "n,,",
        "n,,n=,r=x",
        "n,,n=user,r=",
        "n,,n=a,b,r=x",  # a comma that is not written =2C
        "n,,n=a=b,r=x",  # an equal sign that is not written =3D
        "n,,n=a=2c,r=x",
        "n,,r=x,n=user",
        "n,,n=user,r=a b",
        "n,,n=user,r=x,",
        "n,,n=user,r=x,=y",
        "n,,m=ext,n=user,r=x",  # a mandatory extension
        "y,,n=user,r=x",
        "p=tls-unique,,n=user,r=x",  # channel binding
        "p=tls-exporter,,n=user,r=x",
        "n,a=,n=user,r=x",
        " n,,n=user,r=x",
        "n,,n=user,r=x\n",
        "n,,n=us\0er,r=x",
    ],
)
def test_a_client_first_message_that_is_none(message: str) -> None:
    with pytest.raises(ScramError, match="client-first message is malformed"):
        read_client_first(message.encode())


def test_a_client_first_message_that_is_no_text() -> None:
    with pytest.raises(ScramError, match=r"no UTF-8"):
        read_client_first(b"n,,n=\xff,r=x")


def test_extensions_are_told() -> None:
    assert read_client_first(b"n,,n=user,r=x,tokenauth=true,b=c=d").extensions == {"tokenauth": "true", "b": "c=d"}


def proof(running: ScramServer, first_bare: str, without_proof: str, password: str = PASSWORD) -> str:
    """A client-final message that is right but for what it is given to say."""
    salted = salted_password(MECHANISM, password, ScramClient(MECHANISM, "user", NONCE).challenge(running.first()))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    message = f"{first_bare},{running.first().decode()},{without_proof}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
    both = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    return f"{without_proof},p={b64encode(both).decode()}"


def test_what_the_proof_is_made_for_is_what_counts() -> None:
    running = server()
    good = proof(running, f"n=user,r={NONCE}", f"c=biws,r={NONCE}{OURS}")
    assert running.final(good.encode()).startswith(b"v=")


@pytest.mark.parametrize(
    ("without_proof", "said"),
    [
        (f"c=biws,r={NONCE}", "nonce"),  # the client's part alone
        (f"c=biws,r={OURS}", "nonce"),  # ours alone, which Kafka's server takes for enough
        (f"c=biws,r=x{NONCE}{OURS}", "nonce"),
        ("c=biws,r=other", "nonce"),  # of another exchange
        (f"c=eSws,r={NONCE}{OURS}", "channel binding"),  # y,,
        (f"c=cD10bHMtdW5pcXVlLCw=,r={NONCE}{OURS}", "channel binding"),  # p=tls-unique,,
        (f"c=,r={NONCE}{OURS}", "channel binding"),
        (f"c=bixhPXVzZXIs,r={NONCE}{OURS}", "channel binding"),  # n,a=user,
    ],
)
def test_another_nonce_or_channel_binding_is_refused_however_good_the_proof(without_proof: str, said: str) -> None:
    running = server()
    with pytest.raises(ScramError, match=said):
        running.final(proof(running, f"n=user,r={NONCE}", without_proof).encode())


def test_the_channel_binding_is_of_the_header_that_was_sent() -> None:
    running = server(f"n,a=user,n=user,r={NONCE}")
    good = proof(running, f"n=user,r={NONCE}", f"c=bixhPXVzZXIs,r={NONCE}{OURS}")
    assert running.final(good.encode()).startswith(b"v=")
    with pytest.raises(ScramError, match="channel binding"):
        running.final(proof(running, f"n=user,r={NONCE}", f"c=biws,r={NONCE}{OURS}").encode())


@pytest.mark.parametrize(
    "message",
    [
        "",
        "x",
        f"c=biws,r={NONCE}{OURS}",
        f"c=biws,r={NONCE}{OURS},p=???",
        f"c=biws,r={NONCE}{OURS},p=AA=",
        "c=b,r=x,p=",
    ],
)
def test_a_client_final_message_that_is_none(message: str) -> None:
    with pytest.raises(ScramError, match="malformed"):
        server().final(message.encode())


@pytest.mark.parametrize("sent", [b"", b"x" * 31, b"x" * 33, b"\0" * 32])
def test_a_proof_that_is_none(sent: bytes) -> None:
    with pytest.raises(ScramError, match=r"proof|password"):
        server().final(f"c=biws,r={NONCE}{OURS},p={b64encode(sent).decode()}".encode())


def test_a_recorded_exchange_is_worth_nothing_the_second_time() -> None:
    recorded = f"c=biws,r={NONCE}{OURS},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert server().final(recorded)
    first = read_client_first(f"n,,n=user,r={NONCE}".encode())
    with pytest.raises(ScramError, match="nonce"):
        ScramServer(MECHANISM, first, CREDENTIAL, "another").final(recorded)


def test_a_credential_with_too_few_iterations_is_not_used() -> None:
    with pytest.raises(ScramError, match="4095 iterations"):
        server(credential=CREDENTIAL._replace(iterations=4095))


# ----------------------------------------------------------------------------------------------- who has no credential
def test_what_is_made_up_is_the_same_each_time_and_for_nobody_else() -> None:
    made = {
        made_up(mechanism, user, secret)
        for mechanism in ALGORITHMS
        for user in ("alice", "bob", "")
        for secret in (b"one", b"other")
        for _ in range(2)
    }
    assert len(made) == 12
    assert len({each.salt for each in made}) == 12
    assert made_up(MECHANISM, "alice", b"one") == made_up(MECHANISM, "alice", b"one")


@pytest.mark.parametrize("mechanism", sorted(ALGORITHMS))
def test_what_is_made_up_looks_as_what_kafkas_tools_make(mechanism: str) -> None:
    """A salt of a number of 130 bits in base 36, 4,096 iterations, and keys as long as others."""
    real = credential_of(mechanism, "secret", salt_text(2**130 - 1), ITERATIONS_MIN)
    made = made_up(mechanism, "nobody", b"secret")
    assert (made.iterations, len(made.stored_key), len(made.server_key)) == (
        4096,
        len(real.stored_key),
        len(real.server_key),
    )
    assert (made.salt.decode().isalnum() and made.salt.decode().islower()) or made.salt.isdigit()
    assert abs(len(made.salt) - len(real.salt)) <= 2
    with pytest.raises(ScramError, match="does not know the password"):
        exchange("nobody", "secret", made, mechanism)


@pytest.mark.parametrize(("number", "text"), [(0, b"0"), (35, b"z"), (36, b"10"), (2**130, b"0"), (2**130 + 37, b"11")])
def test_salts_are_numbers_in_base_36(number: int, text: bytes) -> None:
    assert salt_text(number) == text


def test_a_credential_shows_nothing_of_itself() -> None:
    assert repr(CREDENTIAL) == "ScramCredential(iterations=4096, [hidden])"
