"""The test kit's brokers (`odradek.testing`) in a child process, as tests see them that also meet Apache Kafka.

    with KitCluster(3, tmp_path, {"num.partitions": "6"}) as cluster:
        KafkaProducer(bootstrap_servers=cluster.bootstrap)
        cluster.kill()                                  # all brokers at once
        cluster.start()

What is about `odradek serve` or `cluster run` as commands starts these (`processes/odradek_broker.py`).
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from odradek import testing
from processes.free_ports import free_run


class KitCluster:
    """`brokers` of them, 1, 2 and so on, on ports next to one another; each keeps its own over its restarts."""

    def __init__(self, brokers: int, data_dir: Path, options: Mapping[str, str]) -> None:
        self.host: Final = "127.0.0.1"
        self.port: Final = free_run(brokers)
        """The first broker's."""
        self.places: Final = {number: (self.host, self.port + number - 1) for number in range(1, brokers + 1)}
        """By broker's id: host and port."""
        self.addresses: Final = [f"{host}:{port}" for host, port in self.places.values()]
        self._cluster = partial(
            testing.cluster, brokers=brokers, config=options, data_dir=data_dir, port=self.port, subprocess=True
        )
        self._kafka: testing.Kafka | None = None

    @property
    def bootstrap(self) -> str:
        """All of them."""
        return ",".join(self.addresses)

    def start(self) -> None:
        """Returns when all accept connections."""
        assert self._kafka is None, "it runs"
        self._kafka = self._cluster().start()

    def kill(self) -> None:
        """SIGKILL, for all brokers at once."""
        assert self._kafka is not None, "it does not run"
        self._kafka.kill_process()
        self.stop()

    def stop(self) -> None:
        kafka, self._kafka = self._kafka, None
        if kafka is not None:
            kafka.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
