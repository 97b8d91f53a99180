"""What programs test themselves with: a real cluster in a test, and the simulator of whole clusters (`testing.sim`).

    from odradek.testing import cluster

    with cluster(brokers=3, topics={"orders": 6}) as kafka:
        ...                                                     # any client, with kafka.bootstrap_servers

Nothing of the broker or the clients imports it. The names below are looked up when they are first used, for pytest
imports this package in every run (PYTEST_DONT_REWRITE: see pytest_plugin.py).
"""

import gc
import importlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.testing.async_kafka import AsyncKafka as AsyncKafka
    from odradek.testing.faults.fault import FaultRefused as FaultRefused
    from odradek.testing.faults.processed_records import ProcessedRecords as ProcessedRecords
    from odradek.testing.faults.recorded_requests import RecordedRequest as RecordedRequest
    from odradek.testing.faults.recorded_requests import Requests as Requests
    from odradek.testing.faults.recorded_requests import UnexpectedRequests as UnexpectedRequests
    from odradek.testing.kafka import Kafka as Kafka
    from odradek.testing.kafka_cluster import KafkaCluster as KafkaCluster
    from odradek.testing.kafka_cluster import cluster as cluster
    from odradek.testing.waiting import WaitedInVain as WaitedInVain
    from odradek.testing.waiting import now_s as now_s

PUBLIC = {
    "AsyncKafka": "odradek.testing.async_kafka",
    "FaultRefused": "odradek.testing.faults.fault",
    "Kafka": "odradek.testing.kafka",
    "KafkaCluster": "odradek.testing.kafka_cluster",
    "ProcessedRecords": "odradek.testing.faults.processed_records",
    "RecordedRequest": "odradek.testing.faults.recorded_requests",
    "Requests": "odradek.testing.faults.recorded_requests",
    "UnexpectedRequests": "odradek.testing.faults.recorded_requests",
    "WaitedInVain": "odradek.testing.waiting",
    "cluster": "odradek.testing.kafka_cluster",
    "now_s": "odradek.testing.waiting",
}


def __getattr__(name: str) -> Any:
    module = PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'odradek.testing' has no attribute {name!r}")
    with importing():
        value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


@contextmanager
def importing() -> Generator[None]:
    """For many imports: what is imported stays, and to walk over it again and again takes a fifth of their time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
