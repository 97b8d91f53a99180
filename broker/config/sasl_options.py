"""What is set for SASL, one row each (broker_options.py, where the rules of these rows stand).

Most of them may be set for one listener, and for one mechanism of it (`listener.name.outside.plain.sasl.jaas.config`);
`sasl.jaas.config` counts there alone, as in Apache Kafka.
"""

from typing import Final

from odradek.broker.config.option import (
    BOOLEAN,
    CLASS,
    HOUR_MS,
    INT,
    LIST,
    LONG,
    OURS,
    PASSWORD,
    STRING,
    Dynamic,
    Option,
)

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER)
"""Those that are served."""
GSSAPI: Final = "GSSAPI"
"""Kafka's default, Kerberos, which is not."""

PRINCIPAL_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
JWT_VALIDATORS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)
"""What Kafka has to be told, under the newer and the older name, to check a token's signature. Here it always is."""
JWKS_SCHEMES: Final = ("https://", "file:")


def _check_jwks(url: str | None) -> str | None:
    if url is None or url.startswith(JWKS_SCHEMES):
        return None
    return "it must begin with https:// or file:, for keys that come in plain text may be anybody's"


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class SaslOptions:
    """In order of the names."""

    connection_failed_authentication_delay_ms = Option(
        "connection.failed.authentication.delay.ms", INT, 100,
        "How long the answer to a failed authentication, and the end of its connection, are held back.",
        minimum=0, unit="ms",
    )
    connections_max_reauth_ms = Option(
        "connections.max.reauth.ms", LONG, 0,
        "How long a session lasts before its client has to authenticate again (KIP-368); 0: as long as its token, or "
        "without end.", unit="ms", per_mechanism=True,
    )
    principal_builder_class = Option(
        "principal.builder.class", CLASS, PRINCIPAL_BUILDER, "How a principal is made of what was authenticated.",
        choices=(PRINCIPAL_BUILDER,), dynamic=Dynamic.PER_BROKER, per_listener=True,
        deviation="Kafka takes classes of Java.",
    )
    sasl_enabled_mechanisms = Option[tuple[str, ...]](
        "sasl.enabled.mechanisms", LIST, (GSSAPI,), "The mechanisms of SASL that clients may use: some of "
        f"{', '.join(MECHANISMS)}.",
        choices=(*MECHANISMS, GSSAPI), dynamic=Dynamic.PER_BROKER, per_listener=True,
        deviation="GSSAPI is not served: a listener with SASL needs this option.",
    )
    sasl_jaas_config = Option[str | None](
        "sasl.jaas.config", PASSWORD, None,
        "For one mechanism of one listener: the users of PLAIN (`user_NAME=\"PASSWORD\"`), and how this broker logs in "
        "at others (`username`, `password`).",
        dynamic=Dynamic.PER_BROKER, mechanism_alone=True,
    )
    sasl_mechanism_inter_broker_protocol = Option(
        "sasl.mechanism.inter.broker.protocol", STRING, GSSAPI, "By which mechanism brokers log in at one another.",
        choices=(*MECHANISMS, GSSAPI), dynamic=Dynamic.PER_BROKER,
        deviation="GSSAPI is not served: with SASL between brokers this option is needed.",
    )
    sasl_oauthbearer_allow_unsecured_tokens = Option(
        "sasl.oauthbearer.allow.unsecured.tokens", BOOLEAN, False,
        "Whether tokens without a signature (alg none) are taken: then anybody is whoever he says. For trials alone.",
        deviation=OURS, per_mechanism=True,
    )
    sasl_oauthbearer_clock_skew_seconds = Option(
        "sasl.oauthbearer.clock.skew.seconds", INT, 30, "By how much the issuer's clock may be ahead of this one.",
        minimum=0, unit="seconds", per_mechanism=True,
        deviation="A token is not taken after its `exp`, which also ends the session; Kafka takes it, and ends the "
        "session at once.",
    )
    sasl_oauthbearer_expected_audience = Option[tuple[str, ...]](
        "sasl.oauthbearer.expected.audience", LIST, (), "One of these has to be in a token's `aud`; none: a token "
        "with an `aud` is refused.", per_mechanism=True,
    )
    sasl_oauthbearer_expected_issuer = Option[str | None](
        "sasl.oauthbearer.expected.issuer", STRING, None, "What a token's `iss` has to be; none: anything.",
        per_mechanism=True,
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = Option(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, HOUR_MS, "How often the keys of the issuer are read again.",
        minimum=1, unit="ms", per_mechanism=True,
        deviation="A file is read again, too. Kafka has no minimum.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = Option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000,
        "But not beyond this, however often it has failed.", minimum=1, unit="ms", per_mechanism=True,
        deviation="Kafka has no minimum.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = Option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100,
        "How long after a failure the keys are asked for again; doubled with each.", minimum=1, unit="ms",
        per_mechanism=True,
        deviation="Kafka has no minimum.",
    )
    sasl_oauthbearer_jwks_endpoint_url = Option[str | None](
        "sasl.oauthbearer.jwks.endpoint.url", STRING, None, "Where the keys of the issuer are (a JWKS): `https://…`, "
        "which must not redirect, or `file:/PATH`.", check=_check_jwks, per_mechanism=True,
        deviation="Kafka takes http://, too.",
    )
    sasl_oauthbearer_required_scope = Option[tuple[str, ...]](
        "sasl.oauthbearer.required.scope", LIST, (), "What a token's scope has to hold, all of it.",
        per_mechanism=True, deviation=OURS,
    )
    sasl_oauthbearer_scope_claim_name = Option(
        "sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim that holds a token's scope.",
        per_mechanism=True,
    )
    sasl_oauthbearer_sub_claim_name = Option(
        "sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim that names the user.", per_mechanism=True,
    )
    sasl_oauthbearer_token_endpoint_url = Option[str | None](
        "sasl.oauthbearer.token.endpoint.url", STRING, None,
        "Where this broker has the token by which it logs in at others: `https://…`, with `clientId` and "
        "`clientSecret` in `sasl.jaas.config`, or `file:/PATH`.",
        check=_check_jwks, per_mechanism=True, deviation="Kafka takes http://, too.",
    )
    sasl_plain_password_file = Option[str | None](
        "sasl.plain.password.file", STRING, None,
        "A file with a user of PLAIN a line and a hash of the password, `NAME:scrypt$…`; it is read again when it "
        "changes.", per_mechanism=True, deviation=OURS,
    )
    sasl_server_callback_handler_class = Option[str | None](
        "sasl.server.callback.handler.class", CLASS, None, "Kafka's name for what checks tokens' signatures.",
        choices=JWT_VALIDATORS, per_mechanism=True,
        deviation="Kafka takes classes of Java. Signatures are checked whether it is set or not.",
    )
    sasl_server_max_receive_size = Option(
        "sasl.server.max.receive.size", INT, 512 * 1024, "The largest request before a client has authenticated.",
        minimum=1, unit="bytes", per_listener=True, deviation="Kafka has no minimum.",
    )
# fmt: on
