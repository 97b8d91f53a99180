"""What a broker tells of the TLS of its listeners."""

from collections.abc import Sequence

from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.sample import Sample
from odradek.broker.tls.listener_tls import ListenerTls


def tls_samples(listeners: Sequence[ListenerTls], now_ms: int) -> list[Sample]:
    """Of each listener that speaks it."""
    samples: list[Sample] = []
    for listener in listeners:
        label = (listener.name,)
        samples.append((rows.CERTIFICATE_DAYS_LEFT, label, listener.days_left(now_ms)))
        samples.append((rows.CERTIFICATE_REFUSED, label, listener.refused is not None))
    return samples
