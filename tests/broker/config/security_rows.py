"""A few options of listeners, as those of TLS, SASL and limits are, put among the broker's for one test.

What the tests say of rows does not depend on which real ones there are.
"""

from typing import Any

import pytest

from odradek.broker.config.broker_options import BROKER_OPTIONS, BrokerOptions
from odradek.broker.config.option import LIST, LONG, PASSWORD, STRING, Dynamic, Option, rows

PER_LISTENER = Dynamic.PER_LISTENER


# fmt: off
class SecurityRows:
    """In order of the names."""

    connections_max_reauth_ms = Option("connections.max.reauth.ms", LONG, 0, "A number.", per_mechanism=True)
    sasl_enabled_mechanisms = Option[tuple[str, ...]](
        "sasl.enabled.mechanisms", LIST, ("GSSAPI",), "A list.", dynamic=Dynamic.PER_BROKER, per_listener=True,
    )
    sasl_jaas_config = Option[str | None](
        "sasl.jaas.config", PASSWORD, None, "A secret for each mechanism.", mechanism_alone=True
    )
    ssl_client_auth = Option(
        "ssl.client.auth", STRING, "none", "A choice.", choices=("none", "requested", "required"), per_listener=True,
    )
    ssl_key_password = Option[str | None](
        "ssl.key.password", PASSWORD, None, "A secret.", dynamic=PER_LISTENER, per_listener=True
    )
    ssl_keystore_location = Option[str | None](
        "ssl.keystore.location", STRING, None, "A file.", dynamic=PER_LISTENER, per_listener=True
    )
# fmt: on


@pytest.fixture
def security_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has them stand among the options of brokers, and `max.connections` be one of listeners."""
    for name, row in rows(SecurityRows).items():
        monkeypatch.setitem(BROKER_OPTIONS, name, row)
    monkeypatch.setattr(BrokerOptions.max_connections, "per_listener", True)


def value(view: object, attribute: str) -> Any:
    """Of an option that the type of the view does not have."""
    return getattr(view, attribute)
