"""Mutated exchanges against the states of a connection: each is answered or fails, and none gets past the gate.

The gate is `ConnectionCondition`, which follows the stages as in a connection. Whoever it lets through has sent the
right proof: an oracle that knows the passwords, and nothing of the states, says whether the exchange was an honest one.

The seed is printed, and ODRADEK_SASL_SEED repeats a run; ODRADEK_SASL_EXCHANGES makes it longer.
"""

import os
import random
from base64 import b64decode
from typing import Final

import pytest

from odradek.broker.authentication.mechanism import TooBusy
from odradek.broker.authentication.sasl_connection import AuthenticationFailed, SaslConnection, Stage
from odradek.broker.authentication.sasl_listener import SaslListener
from odradek.broker.authentication.unsecured_token import unsecured_token
from odradek.broker.network.connection_state import ConnectionCondition, ConnectionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.scram import ScramClient, ScramError, salted_password
from tests.broker.authentication.listeners import ALICE, ALL, CREDENTIALS, PASSWORD, bearer, listener, plain
from tests.client.virtual_time import VirtualEnvironment, run_virtual

EXCHANGES: Final = int(os.environ.get("ODRADEK_SASL_EXCHANGES", "100000"))
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SALTED: Final = {
    mechanism: salted_password(mechanism, PASSWORD, ScramClient(mechanism, ALICE, "x").challenge(
        b"r=xy,s=MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3A=,i=4096"
    ))
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
}  # fmt: skip
BYTES: Final = (0, 1, 9, 10, 0x2C, 0x3D, 0x2E, 0x41, 0x7F, 0x80, 0xC3, 0xFF)


class Honest:
    """What an honest client sends, by its mechanism; and whether the last token of an exchange is that one."""

    def __init__(self, rng: random.Random, mechanism: str, environment: VirtualEnvironment) -> None:
        self.mechanism = mechanism
        self._environment = environment
        self._scram = ScramClient(mechanism, ALICE, f"{rng.getrandbits(64):x}") if mechanism in SALTED else None
        self.said: list[bytes] = []
        """What it would have said, token by token."""

    def next(self, answer: bytes | None) -> bytes:
        if self.mechanism == "PLAIN":
            token = plain(ALICE, PASSWORD)
        elif self._scram is None:
            options = {"unsecuredLoginStringClaim_sub": ALICE}
            token = bearer(unsecured_token(options, self._environment.now_ms()))
        elif not self.said or answer is None:
            token = self._scram.first()
        else:
            try:
                self._scram.challenge(answer)
                token = self._scram.final(SALTED[self.mechanism])
            except ScramError:
                token = b"c=biws,r=x,p=AAAA"
        self.said.append(token)
        return token


def mutated(rng: random.Random, token: bytes) -> bytes:
    """The token with something wrong with it; by chance with nothing."""
    data = bytearray(token)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 5))):
        position = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            data.insert(position, rng.choice(BYTES))
        elif kind == 1 and position < len(data):
            data[position] = rng.choice(BYTES) if rng.random() < 0.5 else data[position] ^ (1 << rng.randrange(8))
        elif kind == 2:
            del data[position:]
        elif kind == 3:
            del data[position : position + rng.randrange(1, 9)]
        elif kind == 4:
            data[position:position] = data[: rng.randrange(20)]
        else:
            data += bytes(rng.choices(BYTES, k=rng.randrange(1, 9)))
    return bytes(data)


class Gate:
    """A connection's condition, moved by the stages as network/connection.py does."""

    def __init__(self, connection: SaslConnection) -> None:
        self.condition = ConnectionCondition(ConnectionState.UNAUTHENTICATED)
        self._connection = connection
        connection.moved = self._moved

    def _moved(self, stage: Stage) -> None:
        self.condition.move(ConnectionState[stage.name], has_end=self._connection.ends_ms is not None)

    @property
    def is_open(self) -> bool:
        """Whether an ordinary request gets through."""
        admits = self.condition.admits(is_before_authentication=False)
        return admits and self._connection.admits(MetadataRequest.api_key)


async def attack(rng: random.Random, outside: SaslListener, environment: VirtualEnvironment) -> str:
    """One connection, by mutated handshakes and tokens: how it ended."""
    connection = SaslConnection(outside)
    gate = Gate(connection)
    mechanism = rng.choice(MECHANISMS)
    honest = Honest(rng, mechanism, environment)
    named = mechanism if rng.random() < 0.97 else mutated(rng, mechanism.encode()).decode(errors="replace")
    if connection.handshake(named, rng.choice((0, 1, 1, 1))).code is not ErrorCode.NONE:
        assert not gate.is_open
        return "handshake"
    answer: bytes | None = None
    sent: list[bytes] = []
    for _ in range(4):
        assert not gate.is_open, "before it has said who it is"
        token = honest.next(answer)
        if rng.random() < 0.6:
            token = mutated(rng, token)
        sent.append(token)
        try:
            session = await connection.authenticate(token)
        except (AuthenticationFailed, TooBusy):
            assert not gate.is_open
            assert connection.principal is None
            return "refused"
        answer = session.token
        if connection.stage is Stage.READY:
            assert gate.is_open
            assert connection.principal is not None
            check_proof(mechanism, sent, honest, connection.principal.name)
            return "in"
    raise AssertionError("no mechanism asks for a fourth token")


def check_proof(mechanism: str, sent: list[bytes], honest: Honest, user: str) -> None:
    """That who came in has proved it, whatever else was odd about what was sent."""
    if mechanism == "PLAIN":
        authorization, name, password = sent[-1].decode().split("\0")
        assert (name, password) in {(ALICE, PASSWORD), ("bob", "of bob"), ("broker", "between brokers")}
        assert authorization in ("", name)
        assert user == name
    elif mechanism in SALTED:
        # The proof covers all that was said, but for the header's form and extensions of the last message.
        assert user == ALICE
        assert sent[0][3:] == honest.said[0][3:] or sent[0].endswith(honest.said[0][3:]), "the first message is proved"
        proofs = [b64decode(each[-1].partition(b",p=")[2]) for each in (sent, honest.said)]
        assert proofs[0] == proofs[1]
    else:
        assert user, "an unsecured token says who its bearer is; the option says that this proves nothing"


@pytest.mark.parametrize("part", range(4))
def test_no_mutated_exchange_gets_past_the_gate(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("ODRADEK_SASL_SEED") or random.SystemRandom().randrange(2**32)) + part
    with capsys.disabled():
        print(f"\nODRADEK_SASL_SEED={seed - part} (part {part})", end="")  # noqa: T201
    run_virtual(_attacks(seed, EXCHANGES // 4))


async def _attacks(seed: int, count: int) -> None:
    rng, environment = random.Random(seed), VirtualEnvironment(seed=seed)
    outside = listener(ALL, environment, credentials=CREDENTIALS)
    ends = {"handshake": 0, "refused": 0, "in": 0}
    for _ in range(count):
        ends[await attack(rng, outside, environment)] += 1
    assert sum(ends.values()) == count
    assert ends["in"] > count // 20 and ends["refused"] > count // 5 and ends["handshake"], f"{ends}, seed {seed}"
