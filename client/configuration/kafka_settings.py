"""Settings of Kafka's own clients that these do not have, each with what to do instead.

So that a property file which comes from Java is refused with an answer rather than a riddle. The names are those of
Kafka 4.3's clients; a test compares. Of the consumer's, those are here that another client's name would be taken for.
"""

from typing import Final

__all__ = ["KEYSTORES", "MECHANISMS", "NOT_HERE"]

KEYSTORES: Final = (
    "Java's keystores are not read; convert them to PEM (keytool -exportcert -rfc; openssl pkcs12 -nodes) and set "
    "ssl_truststore_location and ssl_keystore_location."
)
"""What to do about ssl.keystore.type=JKS and the like."""
MECHANISMS: Final = "Kerberos (GSSAPI) is not built; of the others, take what the broker's listener offers."
"""What to do about sasl.mechanism=GSSAPI."""

_PLAIN_PEM: Final = "A PEM file has no password of its own; that of an encrypted private key is ssl_key_password."
_CONTEXT: Final = "Build an ssl.SSLContext and set ssl_context."
_OAUTH: Final = "Fetch the token in a coroutine function and set sasl_oauthbearer_token_provider."
_METRICS: Final = "Set metrics to a hook, such as the adapter for Prometheus; it decides about windows and samples."
_JAVA: Final = "It is about Java; leave it out."

NOT_HERE: Final = {
    "bootstrap.controllers": "Set bootstrap_servers; the brokers pass on what is for controllers.",
    "client.rack": "A consumer has it, to read from a replica nearby; what goes to leaders alone leaves it out.",
    "config.providers": "Look the values up before, and hand over the result.",
    "enable.metrics.push": "Metrics are not pushed to brokers (KIP-714); leave it out.",
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "security.providers": _JAVA,
    "ssl.engine.factory.class": _CONTEXT,
    "ssl.keymanager.algorithm": _JAVA,
    "ssl.keystore.password": _PLAIN_PEM,
    "ssl.protocol": "Set ssl_enabled_protocols.",
    "ssl.provider": _JAVA,
    "ssl.secure.random.implementation": _JAVA,
    "ssl.trustmanager.algorithm": _JAVA,
    "ssl.truststore.password": _PLAIN_PEM,
    **dict.fromkeys(
        (
            "sasl.kerberos.kinit.cmd",
            "sasl.kerberos.min.time.before.relogin",
            "sasl.kerberos.service.name",
            "sasl.kerberos.ticket.renew.jitter",
            "sasl.kerberos.ticket.renew.window.factor",
        ),
        MECHANISMS,
    ),
    **dict.fromkeys(
        (
            "sasl.client.callback.handler.class",
            "sasl.login.callback.handler.class",
            "sasl.login.class",
            "sasl.login.connect.timeout.ms",
            "sasl.login.read.timeout.ms",
            "sasl.login.refresh.buffer.seconds",
            "sasl.login.refresh.min.period.seconds",
            "sasl.login.refresh.window.factor",
            "sasl.login.refresh.window.jitter",
            "sasl.login.retry.backoff.max.ms",
            "sasl.login.retry.backoff.ms",
            "sasl.oauthbearer.assertion.algorithm",
            "sasl.oauthbearer.assertion.claim.aud",
            "sasl.oauthbearer.assertion.claim.exp.seconds",
            "sasl.oauthbearer.assertion.claim.iss",
            "sasl.oauthbearer.assertion.claim.jti.include",
            "sasl.oauthbearer.assertion.claim.nbf.seconds",
            "sasl.oauthbearer.assertion.claim.sub",
            "sasl.oauthbearer.assertion.file",
            "sasl.oauthbearer.assertion.private.key.file",
            "sasl.oauthbearer.assertion.private.key.passphrase",
            "sasl.oauthbearer.assertion.template.file",
            "sasl.oauthbearer.client.credentials.client.id",
            "sasl.oauthbearer.client.credentials.client.secret",
            "sasl.oauthbearer.clock.skew.seconds",
            "sasl.oauthbearer.expected.audience",
            "sasl.oauthbearer.expected.issuer",
            "sasl.oauthbearer.header.urlencode",
            "sasl.oauthbearer.jwks.endpoint.refresh.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            "sasl.oauthbearer.jwks.endpoint.url",
            "sasl.oauthbearer.jwt.retriever.class",
            "sasl.oauthbearer.jwt.validator.class",
            "sasl.oauthbearer.scope",
            "sasl.oauthbearer.scope.claim.name",
            "sasl.oauthbearer.sub.claim.name",
            "sasl.oauthbearer.token.endpoint.url",
        ),
        _OAUTH,
    ),
}
"""By Kafka's dotted name."""
