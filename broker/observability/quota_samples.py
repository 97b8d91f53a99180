"""What a broker tells of its quotas: who uses how much, and for how long clients were silenced.

A client may call itself anything, and each name has a series of its own: so only SERIES_MAX of each kind are told,
those that used something last, under names as Kafka sanitises them, none longer than LABEL_LENGTH_MAX.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from odradek.broker.cluster.quotas import sanitised
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.sample import Sample
from odradek.broker.quotas.connection_quotas import ConnectionQuotas
from odradek.runtime.metric import Metric

if TYPE_CHECKING:
    from odradek.broker.quotas.client_quotas import ClientQuotas

SERIES_MAX: Final = 100
LABEL_LENGTH_MAX: Final = 100
_DIGEST_LENGTH: Final = 16

ROWS: Final[Mapping[str, tuple[Metric, Metric]]] = {
    "producer_byte_rate": (rows.PRODUCE_RATE, rows.PRODUCE_THROTTLE),
    "consumer_byte_rate": (rows.FETCH_RATE, rows.FETCH_THROTTLE),
    "request_percentage": (rows.REQUEST_TIME, rows.REQUEST_THROTTLE),
    "controller_mutation_rate": (rows.MUTATION_TOKENS, rows.MUTATION_THROTTLE),
}
"""By kind: what is used, and throttle times."""


def quota_samples(quotas: "ClientQuotas | None", of_connections: ConnectionQuotas, now_ms: float) -> Iterable[Sample]:
    """Of clients, where a quota is set, and of connections, by listener."""
    if quotas is not None:
        yield from _client_samples(quotas, int(now_ms))
    for name, listener in of_connections.listeners.items():
        yield rows.ACCEPT_THROTTLE, (name,), listener.throttled_ms
        yield rows.IP_ACCEPT_THROTTLE, (name,), listener.ip_throttled_ms


def _client_samples(quotas: "ClientQuotas", now_ms: int) -> Iterable[Sample]:
    for each in quotas.kinds:
        for use in each.uses(SERIES_MAX, now_ms):
            labels = label(use.owner.user), label(use.owner.client_id)
            used, throttled = ROWS[use.kind]
            yield used, labels, use.amount
            yield throttled, labels, use.throttled_ms


def label(name: str) -> str:
    """A name as a label has it: another one for another name."""
    text = sanitised(name)
    if len(text) <= LABEL_LENGTH_MAX:
        return text
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{text[: LABEL_LENGTH_MAX - _DIGEST_LENGTH - 1]}~{digest}"
