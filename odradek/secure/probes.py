"""Looks at a listener as a stranger would, one connection after the other, and says what it offers.

Nothing is concluded from a failure alone. That a client's certificate is required is known when the listener has asked
for one and ended the handshake without it (TLS 1.2), or says so by its alert (TLS 1.3: `certificate required`, or `bad
certificate` where none was shown); a version counts as spoken when the listener has chosen it.
"""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.secure.certificate_facts import certificate_facts
from odradek.secure.connection import Closed, NoKafka, PlainConnection, TlsConnection
from odradek.secure.handshake_messages import Flight, read_flight
from odradek.secure.listener_facts import ClientCertificate, KafkaFacts, ListenerFacts, TlsFacts
from odradek.secure.tls_contexts import EVERY_CIPHER, VERSIONS, context_for, modern_context

__all__ = ["NothingThere", "look_at"]

CIPHERS_MAX: Final = 80
UNKNOWN_MECHANISM: Final = "NONE-ODRADEK-CHECK"
"""A listener with SASL answers it with those that it has."""
METADATA_VERSION: Final = 4
"""In all of Kafka's releases from 1.0 on."""
REFUSAL_S: Final = 1.0
"""So long a listener may take for its refusal."""
NEEDS_CERTIFICATE: Final = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE")
"""OpenSSL's names of the alerts by which a listener says that it misses one."""
_FAILED: Final = (Closed, NoKafka, OSError, MalformedMessage, TimeoutError)


class NothingThere(Exception):
    """Nothing answers there, or what does speaks neither Kafka's protocol nor TLS; the text says which."""


@dataclass(frozen=True, slots=True)
class Shaken:
    """How a handshake went. `error` is None where it came to its end."""

    flight: Flight
    error: Exception | None
    cipher: str | None = None
    certificate: bytes | None = None

    @property
    def was_begun(self) -> bool:
        """Whether the listener has chosen version and cipher, whatever came then."""
        return self.flight.cipher is not None

    @property
    def misses_certificate(self) -> bool:
        """Whether the listener has ended it since it wants a certificate of the client."""
        if self.error is None:
            return False
        if any(name in str(self.error).upper().replace(" ", "_") for name in NEEDS_CERTIFICATE):
            return True
        has_ended = isinstance(self.error, ssl.SSLError | Closed | ConnectionError)
        return has_ended and self.flight.asks_for_certificate is True


class Looker:
    """Opens connections to one listener."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._host = host
        self._port = port
        self._timeout_s = timeout_s

    async def plain(self) -> KafkaFacts | None:
        """What it says without TLS; None: nothing that is Kafka's protocol. Raises NothingThere where nobody can be
        connected to."""
        try:
            return await self._kafka(None)
        except ConnectionRefusedError as error:
            raise NothingThere(f"nothing listens on {self._host}:{self._port}") from error
        except (TimeoutError, ConnectionError, Closed, NoKafka, MalformedMessage):
            return None
        except OSError as error:
            raise NothingThere(f"{self._host}:{self._port} cannot be reached: {error.strerror or error}") from error

    async def _kafka(self, context: ssl.SSLContext | None) -> KafkaFacts:
        """Raises NoKafka, Closed, OSError, MalformedMessage, TimeoutError."""
        connection = await self._open(context)
        try:
            async with asyncio.timeout(self._timeout_s):
                greeting = await connection.ask(ApiVersionsRequest(), 0)
                has_sasl = any(each.api_key == SaslHandshakeRequest.api_key for each in greeting.api_keys)
                mechanisms = await self._mechanisms(connection) if has_sasl else ()
        finally:
            connection.close()
        return KafkaFacts(await self._answers_metadata(context), mechanisms)

    async def _mechanisms(self, connection: PlainConnection) -> tuple[str, ...]:
        """Those of SASL; none where the listener has no SASL, though the broker knows the request."""
        try:
            answer = await connection.ask(SaslHandshakeRequest(mechanism=UNKNOWN_MECHANISM), 1)
        except _FAILED:
            return ()
        return tuple(answer.mechanisms) if answer.error_code == int(ErrorCode.UNSUPPORTED_SASL_MECHANISM) else ()

    async def _answers_metadata(self, context: ssl.SSLContext | None) -> bool:
        """Whether it does for who has not said who it is. With SASL it ends the connection instead."""
        connection = await self._open(context)
        try:
            async with asyncio.timeout(self._timeout_s):
                await connection.ask(ApiVersionsRequest(), 0)
                await connection.ask(MetadataRequest(topics=[]), METADATA_VERSION)
        except _FAILED:
            return False
        finally:
            connection.close()
        return True

    async def _open(self, context: ssl.SSLContext | None) -> PlainConnection:
        async with asyncio.timeout(self._timeout_s):
            reader, writer = await asyncio.open_connection(self._host, self._port)
            if context is None:
                return PlainConnection(reader, writer)
            connection = TlsConnection(reader, writer, context, self._host)
            try:
                await connection.handshake()
            except BaseException:
                connection.close()
                raise
            return connection

    # ------------------------------------------------------------------------------------------------------------ TLS
    async def shake(self, context: ssl.SSLContext) -> Shaken:
        """Raises nothing but NothingThere: how it went is the answer."""
        try:
            async with asyncio.timeout(self._timeout_s):
                reader, writer = await asyncio.open_connection(self._host, self._port)
        except OSError as error:  # TimeoutError is one
            raise NothingThere(f"{self._host}:{self._port} does not accept connections any more") from error
        connection = TlsConnection(reader, writer, context, self._host)
        try:
            async with asyncio.timeout(self._timeout_s):
                await connection.handshake()
                return Shaken(read_flight(bytes(connection.received)), None, connection.cipher, connection.certificate)
        except (OSError, Closed) as error:  # ssl.SSLError is an OSError
            return Shaken(read_flight(bytes(connection.received)), error)
        finally:
            connection.close()

    async def tls(self, trusted: ssl.SSLContext) -> tuple[TlsFacts, KafkaFacts | None, Mapping[str, int]]:
        """`trusted`: a context that verifies the listener's certificate. Raises NothingThere."""
        versions: dict[str, bool | None] = {}
        shaken: dict[str, Shaken] = {}
        for name, version in VERSIONS.items():
            context = context_for(version)
            if context is None:
                versions[name] = None
                continue
            shaken[name] = await self.shake(context)
            versions[name] = shaken[name].was_begun
        spoken = [name for name in versions if versions[name]]
        if not spoken:
            raise NothingThere(
                f"{self._host}:{self._port} answers neither Kafka's protocol nor TLS in a version that can be tried"
            )
        newest = shaken[spoken[0]]
        ciphers, strengths = await self._ciphers() if versions.get("TLSv1.2") else ((), {})
        kafka, misses = await self._kafka_in_tls(newest)
        plain = (one.flight.certificate for one in shaken.values() if one.flight.certificate is not None)
        der = newest.certificate or next(plain, None)
        facts = TlsFacts(
            versions,
            newest.cipher,
            ciphers,
            None if der is None else certificate_facts(der),
            await self._distrust(trusted),
            _client_certificate([shaken[name] for name in spoken], misses=misses),
        )
        return facts, kafka, strengths

    async def _kafka_in_tls(self, newest: Shaken) -> tuple[KafkaFacts | None, bool]:
        """What is said within TLS to who has no certificate, and whether the listener says that it misses one."""
        if newest.error is not None:
            return None, newest.misses_certificate
        context = modern_context()
        try:
            await self._hear_refusal(context)
            return await self._kafka(context), False
        except ssl.SSLError as error:
            return None, Shaken(Flight(), error).misses_certificate
        except _FAILED:
            return None, False

    async def _hear_refusal(self, context: ssl.SSLContext) -> None:
        """Waits for what a listener of TLS 1.3 says of a missing certificate when the handshake has ended. Who writes
        meanwhile may find the connection reset, and that word lost. Raises ssl.SSLError."""
        connection = await self._open(context)
        try:
            async with asyncio.timeout(min(self._timeout_s, REFUSAL_S)):
                await connection.listen()
        except ssl.SSLError:
            raise
        except _FAILED:
            return
        finally:
            connection.close()

    async def _ciphers(self) -> tuple[tuple[str, ...], dict[str, int]]:
        """Those of TLS 1.2 that the listener takes: it chooses one of all, then of the others, until none is left.

        With how strong each is, in bits.
        """
        context = context_for(ssl.TLSVersion.TLSv1_2)
        assert context is not None
        context.set_ciphers(EVERY_CIPHER)
        known = {each["id"] & 0xFFFF: each for each in context.get_ciphers() if "TLSv1.3" not in each["protocol"]}
        strengths = {str(each["name"]): int(each["strength_bits"]) for each in known.values()}
        left = {number: str(each["name"]) for number, each in known.items()}
        found: list[str] = []
        while left and len(found) < CIPHERS_MAX:
            context = context_for(ssl.TLSVersion.TLSv1_2)
            assert context is not None
            context.set_ciphers(f"{':'.join(left.values())}:@SECLEVEL=0")
            chosen = (await self.shake(context)).flight.cipher
            if chosen is None or chosen not in left:
                break
            found.append(left.pop(chosen))
        return tuple(found), strengths

    async def _distrust(self, trusted: ssl.SSLContext) -> str | None:
        """Why the listener's certificate is not trusted for this host; None: it is.

        Whatever else goes wrong comes after that: a client's certificate that is missed, for one.
        """
        shaken = await self.shake(trusted)
        if isinstance(shaken.error, ssl.SSLCertVerificationError):
            return shaken.error.verify_message or "it was not verified"
        if shaken.error is not None and not shaken.was_begun:
            return "the listener takes no version of TLS that is safe"
        return None


async def look_at(host: str, port: int, trusted: ssl.SSLContext, timeout_s: float) -> ListenerFacts:
    """Raises NothingThere."""
    looker = Looker(host, port, timeout_s)
    plain = await looker.plain()
    if plain is not None:
        return ListenerFacts(host, port, kafka=plain)
    tls, kafka, strengths = await looker.tls(trusted)
    return ListenerFacts(host, port, tls, kafka, strengths)


def _client_certificate(shaken: list[Shaken], *, misses: bool) -> ClientCertificate:
    """`shaken`: those in which the listener has chosen a version. `misses`: it has said later that it misses one."""
    if misses or any(one.misses_certificate for one in shaken):
        return ClientCertificate.REQUIRED
    told = [one.flight.asks_for_certificate for one in shaken if one.flight.asks_for_certificate is not None]
    if any(told):
        return ClientCertificate.REQUESTED
    if told:
        return ClientCertificate.NONE
    return ClientCertificate.NOT_REQUIRED if any(one.error is None for one in shaken) else ClientCertificate.UNKNOWN
