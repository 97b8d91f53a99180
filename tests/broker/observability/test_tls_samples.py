"""What is told of certificates: until when they count, and whether newer ones were refused."""

from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.tls_samples import tls_samples
from tests.broker.network.tls_pair import listener
from tests.broker.tls.authority import Authority

DAY_MS = 24 * 60 * 60 * 1000


def test_samples() -> None:
    tls = listener(Authority("authority").issue("broker"))
    now_ms = tls.expires_ms - 10 * DAY_MS
    assert tls_samples([tls], now_ms) == [
        (rows.CERTIFICATE_DAYS_LEFT, ("OUTSIDE",), 10.0),
        (rows.CERTIFICATE_REFUSED, ("OUTSIDE",), False),
    ]
    tls.refused = "its name would change"
    assert tls_samples([tls], now_ms)[1] == (rows.CERTIFICATE_REFUSED, ("OUTSIDE",), True)
    assert tls_samples([], now_ms) == []
