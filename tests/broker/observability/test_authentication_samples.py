"""What the metrics page tells of authentication: each count under its labels, and nothing where there is no SASL."""

from odradek.broker.authentication.authentication import Authentication
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.authentication_samples import authentication_samples
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks


async def test_counts_are_told_by_listener_and_mechanism() -> None:
    assert list(authentication_samples(None)) == []
    environment = Environment()
    tasks = Tasks(environment.loop)
    sasl = Authentication(["OUTSIDE"], BrokerConfig(), environment, tasks, MemoryDisk(), lambda: None)
    assert list(authentication_samples(sasl)) == []
    counts = sasl.counts
    counts.succeeded("OUTSIDE", "PLAIN", again=False)
    counts.succeeded("OUTSIDE", "PLAIN", again=True)
    counts.failed("OUTSIDE", "x", again=False)
    counts.failed("OUTSIDE", "PLAIN", again=True)
    counts.expired["OUTSIDE"] += 2
    assert list(authentication_samples(sasl)) == [
        (rows.AUTHENTICATIONS, ("OUTSIDE", "PLAIN"), 1),
        (rows.FAILED_AUTHENTICATIONS, ("OUTSIDE", "other"), 1),
        (rows.REAUTHENTICATIONS, ("OUTSIDE", "PLAIN"), 1),
        (rows.FAILED_REAUTHENTICATIONS, ("OUTSIDE", "PLAIN"), 1),
        (rows.EXPIRED_SESSIONS, ("OUTSIDE",), 2),
    ]
