"""What a broker tells of authentication by SASL: how often it went well or not, by listener and mechanism."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.sample import Sample

if TYPE_CHECKING:
    from odradek.broker.authentication.authentication import Authentication


def authentication_samples(authentication: "Authentication | None") -> Iterable[Sample]:
    """Of each listener and mechanism by which somebody has tried; nothing where no listener speaks SASL."""
    if authentication is None:
        return
    counts = authentication.counts
    for row, counter in (
        (rows.AUTHENTICATIONS, counts.successes),
        (rows.FAILED_AUTHENTICATIONS, counts.failures),
        (rows.REAUTHENTICATIONS, counts.renewals),
        (rows.FAILED_REAUTHENTICATIONS, counts.failed_renewals),
    ):
        for labels, count in sorted(counter.items()):
            yield row, labels, count
    for listener, count in sorted(counts.expired.items()):
        yield rows.EXPIRED_SESSIONS, (listener,), count
