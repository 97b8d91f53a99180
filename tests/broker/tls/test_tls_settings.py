"""What options say about TLS: contradictions as Kafka finds them, JKS, and whose `ssl.client.auth` counts."""

from typing import Any

import pytest

from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.tls.tls_error import TlsError
from tests.broker.tls.authority import tls_settings

SECRET = "hunter2"  # noqa: S105  (it is none)
FILE: dict[str, Any] = {"ssl_keystore_location": "/k.pem", "ssl_keystore_type": "PEM"}
VALUES: dict[str, Any] = {"ssl_keystore_key": SECRET, "ssl_keystore_certificate_chain": "c", "ssl_keystore_type": "PEM"}
TRUST: dict[str, Any] = {"ssl_truststore_location": "/t.pem", "ssl_truststore_type": "PEM"}


@pytest.mark.parametrize(
    "values",
    [
        FILE,
        VALUES,
        FILE | TRUST | {"ssl_client_auth": "required"},
        {"ssl_keystore_location": "/k.p12", "ssl_keystore_type": "PKCS12", "ssl_keystore_password": SECRET},
        FILE | {"ssl_truststore_location": "/t.p12", "ssl_truststore_type": "PKCS12"},
        VALUES | {"ssl_key_password": SECRET},
    ],
)
def test_what_is_enough(values: dict[str, Any]) -> None:
    tls_settings(**values).check()


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "it has no certificate: set ssl.keystore.location and ssl.keystore.type"),
        ({"ssl_keystore_location": "/k.jks"}, "ssl.keystore.type is JKS, Kafka's default.*PEM or PKCS12"),
        (
            {"ssl_keystore_location": "/k.jks", "ssl_keystore_password": SECRET},
            "keytool -importkeystore -srckeystore /k.jks -destkeystore /k.jks.p12 -deststoretype PKCS12",
        ),
        (FILE | {"ssl_truststore_location": "/t.jks"}, "ssl.truststore.type is JKS"),
        (FILE | {"ssl_keystore_type": "BKS"}, "ssl.keystore.type=BKS is not served"),
        (FILE | {"ssl_keystore_password": SECRET}, "ssl.keystore.password has no meaning for PEM"),
        ({"ssl_keystore_password": SECRET}, "ssl.keystore.password is set, and ssl.keystore.location is not"),
        ({"ssl_keystore_location": "/k", "ssl_keystore_type": "PKCS12"}, "ssl.keystore.password is missing"),
        (VALUES | {"ssl_keystore_type": "PKCS12"}, "keys and certificates as values are PEM"),
        (VALUES | {"ssl_keystore_location": "/k"}, "are both set"),
        (VALUES | {"ssl_keystore_password": SECRET}, "has no meaning for PEM"),
        (VALUES | {"ssl_keystore_key": None}, "ssl.keystore.certificate.chain is set, and ssl.keystore.key is not"),
        (
            VALUES | {"ssl_keystore_certificate_chain": None},
            "ssl.keystore.key is set, and ssl.keystore.certificate.chain is not",
        ),
        (FILE | TRUST | {"ssl_truststore_certificates": "c"}, "ssl.truststore.location and ssl.truststore.cert.*both"),
        (FILE | {"ssl_truststore_password": SECRET}, "ssl.truststore.password is set, and ssl.truststore.location"),
        (FILE | {"ssl_client_auth": "required"}, "ssl.client.auth=required, and nothing says whose"),
        (FILE | {"ssl_client_auth": "requested"}, "ssl.client.auth=requested, and nothing says whose"),
    ],
)
def test_what_contradicts_itself_is_refused(values: dict[str, Any], why: str) -> None:
    with pytest.raises(TlsError, match=why) as caught:
        tls_settings(**values).check()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("protocol", "has_own", "asked"),
    [
        (SecurityProtocol.SSL, False, "required"),
        (SecurityProtocol.SSL, True, "required"),
        (SecurityProtocol.SASL_SSL, False, "none"),
        (SecurityProtocol.SASL_SSL, True, "required"),
    ],
)
def test_with_sasl_only_the_listeners_own_client_auth_counts(
    protocol: SecurityProtocol, has_own: bool, asked: str
) -> None:
    """KIP-684."""
    settings = tls_settings(protocol, has_own_client_auth=has_own, ssl_client_auth="required")
    assert settings.client_auth == asked
    assert settings.names_clients is (protocol is SecurityProtocol.SSL)


def test_only_certificates_and_keys_change_at_run_time() -> None:
    started = tls_settings(**FILE, ssl_client_auth="required", ssl_enabled_protocols=("TLSv1.3",))
    altered = tls_settings(**VALUES, ssl_client_auth="none", ssl_allow_dn_changes=True)
    renewed = started.renewed(altered)
    assert renewed.keystore == altered.keystore
    assert (renewed.client_auth, renewed.protocols, renewed.allows_dn_changes) == ("required", ("TLSv1.3",), False)


def test_secrets_are_in_no_repr() -> None:
    settings = tls_settings(**VALUES, ssl_key_password=SECRET)
    assert SECRET not in f"{settings!r} {settings.keystore!r} {settings}"
