"""What was found out about a listener, as values. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from odradek.secure.certificate_facts import CertificateFacts

__all__ = ["ClientCertificate", "KafkaFacts", "ListenerFacts", "TlsFacts"]


class ClientCertificate(Enum):
    """Whether clients have to show a certificate."""

    NONE = "not asked for"
    REQUESTED = "asked for, and not required"
    REQUIRED = "required"
    NOT_REQUIRED = "not required; in TLS 1.3 it cannot be seen whether one is asked for"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KafkaFacts:
    """What is answered to who has not said who it is."""

    answers_metadata: bool
    """Whether Metadata is answered: then everything is, as far as ACLs go."""
    mechanisms: tuple[str, ...] = ()
    """Of SASL; none: the listener has no SASL."""


@dataclass(frozen=True, slots=True)
class TlsFacts:
    """`versions`: whether each is spoken, None where the OpenSSL here cannot try it. `ciphers`: of TLS 1.2, as the
    listener prefers them, by OpenSSL's names. `untrusted`: why its certificate is not trusted; None: it is, and bears
    the name of the host."""

    versions: Mapping[str, bool | None]
    cipher: str | None = None
    """What was chosen in the newest version."""
    ciphers: tuple[str, ...] = ()
    certificate: CertificateFacts | None = None
    untrusted: str | None = None
    client_certificate: ClientCertificate = ClientCertificate.UNKNOWN


@dataclass(frozen=True, slots=True)
class ListenerFacts:
    """`tls` is None for a listener that speaks Kafka's protocol without it. `kafka` is None where it says nothing: to
    who has no certificate."""

    host: str
    port: int
    tls: TlsFacts | None = None
    kafka: KafkaFacts | None = None
    strengths: Mapping[str, int] = field(default_factory=dict[str, int])
    """How strong ciphers are, by name."""

    @property
    def protocol(self) -> str:
        """As `security.protocol` has it."""
        has_sasl = self.kafka is not None and bool(self.kafka.mechanisms)
        if self.tls is None:
            return "SASL_PLAINTEXT" if has_sasl else "PLAINTEXT"
        return "SASL_SSL" if has_sasl else "SSL"
