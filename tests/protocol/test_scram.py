"""SCRAM against the example of RFC 7677, a server written here from RFC 5802, and everything that a server may lie."""

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.scram import ITERATIONS_MAX, ITERATIONS_MIN, Challenge, ScramClient, ScramError, salted_password

MECHANISMS = {"SCRAM-SHA-256": hashlib.sha256, "SCRAM-SHA-512": hashlib.sha512}
NONCE = "rOprNGfwEbeRWgbNEkqO"


class Server:
    """The other side: it keeps what Kafka keeps of a password, and compares."""

    def __init__(self, mechanism: str, password: str, salt: bytes = b"salt", iterations: int = 4096) -> None:
        self.digest = MECHANISMS[mechanism]
        salted = self.iterated(password.encode(), salt, iterations)
        self.stored_key = self.digest(self.mac(salted, b"Client Key")).digest()
        self.server_key = self.mac(salted, b"Server Key")
        self.first = f"s={b64encode(salt).decode()},i={iterations}"
        self.nonce = ""
        self.said: list[str] = []

    def mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self.digest).digest()

    def iterated(self, password: bytes, salt: bytes, iterations: int) -> bytes:
        """Hi() of RFC 5802, as it is written there."""
        last = result = int.from_bytes(self.mac(password, salt + b"\0\0\0\1"))
        size = self.digest().digest_size
        for _ in range(iterations - 1):
            last = int.from_bytes(self.mac(password, last.to_bytes(size)))
            result ^= last
        return result.to_bytes(size)

    def answer_first(self, client_first: bytes) -> bytes:
        header, bare = client_first.decode()[:3], client_first.decode()[3:]
        assert header == "n,,"
        self.nonce = bare.partition(",r=")[2] + "server's"
        self.said = [bare, f"r={self.nonce},{self.first}"]
        return self.said[1].encode()

    def answer_final(self, client_final: bytes) -> bytes:
        without_proof, _, proof = client_final.decode().rpartition(",p=")
        assert without_proof == f"c=biws,r={self.nonce}"
        message = ",".join((*self.said, without_proof)).encode()
        signature = self.mac(self.stored_key, message)
        key = bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True))
        if self.digest(key).digest() != self.stored_key:
            return b"e=invalid-proof"
        return b"v=" + b64encode(self.mac(self.server_key, message))


def run(client: ScramClient, server: Server, mechanism: str, password: str) -> None:
    challenge = client.challenge(server.answer_first(client.first()))
    client.verify(server.answer_final(client.final(salted_password(mechanism, password, challenge))))


def test_the_example_of_rfc_7677() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", NONCE)
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    challenge = client.challenge(nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert challenge == Challenge(b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    assert client.final(salted_password("SCRAM-SHA-256", "pencil", challenge)) == (
        b"c=biws," + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    client.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@settings(max_examples=10)
@given(st.sampled_from(sorted(MECHANISMS)), st.text(min_size=1), st.text(min_size=1), st.binary(min_size=1))
def test_who_knows_the_password_is_believed_and_believes(mechanism: str, user: str, password: str, salt: bytes) -> None:
    run(ScramClient(mechanism, user, NONCE), Server(mechanism, password, salt), mechanism, password)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_does_not_know_it_is_refused(mechanism: str) -> None:
    with pytest.raises(ScramError, match="the server refused: invalid-proof"):
        run(ScramClient(mechanism, "user", NONCE), Server(mechanism, "right"), mechanism, "wrong")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_server_that_does_not_know_it_is_not_believed(mechanism: str) -> None:
    """It accepts every proof, which is all that it can do."""

    class Impostor(Server):
        def answer_final(self, client_final: bytes) -> bytes:
            return b"v=" + b64encode(self.mac(self.server_key, client_final))

    with pytest.raises(ScramError, match="signature is wrong"):
        run(ScramClient(mechanism, "user", NONCE), Impostor(mechanism, "guessed"), mechanism, "right")


def test_commas_and_equals_signs_in_names_are_written_as_the_rfc_says() -> None:
    assert ScramClient("SCRAM-SHA-256", "a=b,c", NONCE).first() == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()


@pytest.mark.parametrize(
    ("server_first", "says"),
    [
        (f"r={NONCE}x,s=c2FsdA==,i={ITERATIONS_MIN - 1}", "4095 iterations"),
        (f"r={NONCE}x,s=c2FsdA==,i={ITERATIONS_MAX + 1}", "1000001 iterations"),
        (f"r={NONCE}x,s=c2FsdA==,i=9999999999", "9999999999 iterations"),
        (f"r={NONCE},s=c2FsdA==,i=4096", "does not continue"),
        (f"r=x{NONCE},s=c2FsdA==,i=4096", "does not continue"),
        (f"r={NONCE[:-1]}y,s=c2FsdA==,i=4096", "does not continue"),
        (f"r={NONCE}x,s=c2FsdA,i=4096", "no base64"),
        (f"r={NONCE}x,s=,i=4096", "malformed"),
        (f"r={NONCE}x,s=c2FsdA==,i=-4096", "malformed"),
        (f"r={NONCE}x,s=c2FsdA==,i=", "malformed"),
        (f"m=new,r={NONCE}x,s=c2FsdA==,i=4096", "malformed"),
        (f"s=c2FsdA==,r={NONCE}x,i=4096", "malformed"),
        ("e=unknown-user", "malformed"),
        ("", "malformed"),
        (b"\xff\xfe", "no UTF-8"),
    ],
)
def test_a_server_first_message_that_breaks_the_rules_is_refused(server_first: str | bytes, says: str) -> None:
    client = ScramClient("SCRAM-SHA-256", "user", NONCE)
    with pytest.raises(ScramError, match=says):
        client.challenge(server_first.encode() if isinstance(server_first, str) else server_first)


@pytest.mark.parametrize(
    ("server_final", "says"),
    [
        (b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "signature is wrong|no base64"),
        (b"v=AAAA", "signature is wrong"),
        (b"v=A", "no base64"),
        (b"v=", "malformed"),
        (b"", "malformed"),
        (b"e=other-error", "the server refused: other-error"),
        (b"\xff", "no UTF-8"),
    ],
)
def test_a_server_final_message_that_proves_nothing_is_refused(server_final: bytes, says: str) -> None:
    client = ScramClient("SCRAM-SHA-256", "user", NONCE)
    challenge = client.challenge(f"r={NONCE}x,s=c2FsdA==,i=4096".encode())
    client.final(salted_password("SCRAM-SHA-256", "pencil", challenge))
    with pytest.raises(ScramError, match=says):
        client.verify(server_final)


def test_optional_extensions_are_passed_over() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", NONCE)
    assert client.challenge(f"r={NONCE}x,s=c2FsdA==,i=4096,t=whatever, it is".encode()).iterations == 4096
