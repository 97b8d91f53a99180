"""The options of TLS: Kafka's `ssl.*`, and ours that bound what strangers may take (`connection.authentication...`).

All of Kafka's may be set for one listener, as `listener.name.outside.ssl.keystore.location`; while the broker runs, its
certificates and keys may be set for one listener only (SslConfigs.RECONFIGURABLE_CONFIGS, DynamicBrokerConfig.scala).
"""

from odradek.broker.config.option import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    OURS,
    PASSWORD,
    STRING,
    Dynamic,
    Option,
)

_JKS = "PEM and PKCS12 are served. Kafka's default JKS is not: the start of a listener with TLS is refused then."


def _algorithm_problem(value: str) -> str | None:
    return None if value.lower() in ("", "https") else "it must be https, or empty for no comparison of names"


# fmt: off
class TlsOptions:
    """What is set for TLS, by file, command line or for one listener, in order of the names."""

    connection_authentication_timeout_ms = Option(
        "connection.authentication.timeout.ms", INT, 30_000,
        "How long it may take from the moment a connection is accepted until it is known who the client is, TLS and "
        "SASL together. What the client sends meanwhile gives it no more time.",
        minimum=100, unit="ms", dynamic=CLUSTER_WIDE, deviation=OURS,
    )
    max_unauthenticated_connections = Option(
        "max.unauthenticated.connections", INT, 1000,
        "How many connections may be on their way through TLS and SASL at a time; another one takes the place of the "
        "oldest.",
        minimum=1, dynamic=CLUSTER_WIDE, deviation=OURS,
    )
    max_unauthenticated_connections_per_ip = Option(
        "max.unauthenticated.connections.per.ip", INT, 250,
        "How many of them may come from one address; another one is closed.",
        minimum=1, dynamic=CLUSTER_WIDE, deviation=OURS,
    )
    ssl_allow_dn_changes = Option(
        "ssl.allow.dn.changes", BOOLEAN, False,
        "Whether a listener's certificate may be replaced, while the broker runs, by one of another name.",
        per_listener=True,
    )
    ssl_allow_san_changes = Option(
        "ssl.allow.san.changes", BOOLEAN, False,
        "Whether a listener's certificate may be replaced, while the broker runs, by one that lacks some of its "
        "alternative names.",
        per_listener=True,
    )
    ssl_cipher_suites = Option[tuple[str, ...]](
        "ssl.cipher.suites", LIST, (),
        "The cipher suites that may be used, as IANA names them; none: those with forward secrecy and without SHA-1.",
        dynamic=Dynamic.PER_BROKER,
        deviation="A list must name all three suites of TLS 1.3, which Python cannot switch off, or TLSv1.3 must not "
        "be enabled. Suites of DHE and weak ones are not served.",
        per_listener=True,
    )
    ssl_client_auth = Option(
        "ssl.client.auth", STRING, "none",
        "Whether clients must have a certificate (`required`), may (`requested`), or are not asked. On a SASL_SSL "
        "listener it counts only with the listener's prefix.",
        choices=("required", "requested", "none"), dynamic=Dynamic.PER_BROKER,
        deviation="Without a truststore a listener that asks for certificates is not started; Kafka takes Java's.",
        per_listener=True,
    )
    ssl_enabled_protocols = Option[tuple[str, ...]](
        "ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "The versions of TLS that are spoken.",
        choices=("TLSv1.2", "TLSv1.3"), dynamic=Dynamic.PER_BROKER, deviation="No older version is served.",
        per_listener=True,
    )
    ssl_endpoint_identification_algorithm = Option(
        "ssl.endpoint.identification.algorithm", STRING, "https",
        "`https`: a broker compares the name in another broker's certificate with the host that it connects to. Empty: "
        "it does not.",
        check=_algorithm_problem, dynamic=Dynamic.PER_BROKER,
        per_listener=True,
    )
    ssl_key_password = Option[str | None](
        "ssl.key.password", PASSWORD, None, "Of the private key, where it is encrypted.", dynamic=Dynamic.PER_LISTENER,
        per_listener=True,
    )
    ssl_keystore_certificate_chain = Option[str | None](
        "ssl.keystore.certificate.chain", PASSWORD, None,
        "The broker's certificate and those that issued it, in PEM, as the value itself.", dynamic=Dynamic.PER_LISTENER,
        per_listener=True,
    )
    ssl_keystore_key = Option[str | None](
        "ssl.keystore.key", PASSWORD, None,
        "The private key, in PEM (PKCS#8), as the value itself. It is never written to a disk.",
        dynamic=Dynamic.PER_LISTENER,
        per_listener=True,
    )
    ssl_keystore_location = Option[str | None](
        "ssl.keystore.location", STRING, None,
        "The file of the private key and its certificates. It is read again when it changes.",
        dynamic=Dynamic.PER_LISTENER,
        per_listener=True,
    )
    ssl_keystore_password = Option[str | None](
        "ssl.keystore.password", PASSWORD, None, "Of that file, if it is PKCS12.", dynamic=Dynamic.PER_LISTENER,
        per_listener=True,
    )
    ssl_keystore_type = Option(
        "ssl.keystore.type", STRING, "JKS", "The format of that file, or of the value.",
        dynamic=Dynamic.PER_LISTENER, deviation=_JKS,
        per_listener=True,
    )
    ssl_principal_mapping_rules = Option(
        "ssl.principal.mapping.rules", STRING, "DEFAULT",
        "How the name in a client's certificate becomes the name of its principal: `RULE:pattern/replacement/`, with L "
        "or U for the case, or DEFAULT, separated by commas.",
        deviation="What Python's regular expressions cannot say is refused.",
        per_listener=True,
    )
    ssl_truststore_certificates = Option[str | None](
        "ssl.truststore.certificates", PASSWORD, None,
        "The certificates of those who may have issued clients', and other brokers', in PEM, as the value itself.",
        dynamic=Dynamic.PER_LISTENER,
        per_listener=True,
    )
    ssl_truststore_location = Option[str | None](
        "ssl.truststore.location", STRING, None,
        "The file of these certificates. It is read again when it changes.", dynamic=Dynamic.PER_LISTENER,
        per_listener=True,
    )
    ssl_truststore_password = Option[str | None](
        "ssl.truststore.password", PASSWORD, None, "Of that file, if it is PKCS12.", dynamic=Dynamic.PER_LISTENER,
        per_listener=True,
    )
    ssl_truststore_type = Option(
        "ssl.truststore.type", STRING, "JKS", "The format of that file, or of the value.",
        dynamic=Dynamic.PER_LISTENER, deviation=_JKS,
        per_listener=True,
    )
# fmt: on
