"""Three brokers, a process each, on one etcd: a cluster of which one can be killed while the others go on."""

import contextlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from odradek.spark_jobs.demo.broker_process import BrokerProcess
from odradek.spark_jobs.demo.etcd_process import EtcdProcess

NODE_IDS: Final = (1, 2, 3)

# Arguments for a broker: its id, its etcd, HOST:PORT where it listens (port 0: a free one), and where its data is.
MemberCommand = Callable[[int, str, str, Path], list[str]]


def odradek_member(node_id: int, metadata: str, listen: str, data_directory: Path) -> list[str]:
    """`odradek serve` as one of several, by the interpreter that runs the demo."""
    where = ("--listen", listen, "--data-dir", str(data_directory))
    member = ("--node-id", str(node_id), "--metadata", metadata)
    return [sys.executable, "-m", "odradek", "serve", *member, *where]


class ThreeBrokers:
    """A context manager that leaves no process behind. `start` before anything else."""

    def __init__(self, directory: Path, command: MemberCommand = odradek_member) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._etcd = EtcdProcess(directory / "etcd", directory / "etcd.log")
        self._brokers = {
            node_id: BrokerProcess(
                partial(command, node_id, self._etcd.address),
                directory / f"broker-{node_id}",
                directory / f"broker-{node_id}.log",
            )
            for node_id in NODE_IDS
        }
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        # The last one is left first: brokers need their metadata in order to stop well.
        self._open.enter_context(self._etcd)
        for broker in self._brokers.values():
            self._open.enter_context(broker)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def bootstrap(self) -> str:
        """All of them, for clients: any may be away."""
        return ",".join(broker.address for broker in self._brokers.values())

    def start(self) -> None:
        """Returns when all are ready; raises DemoFailed if one does not get there."""
        self._etcd.start()
        for broker in self._brokers.values():
            broker.start()

    def kill(self, node_id: int) -> None:
        """SIGKILL, for one of them."""
        self._brokers[node_id].kill()

    def start_again(self, node_id: int) -> None:
        """On the port that it had."""
        self._brokers[node_id].start()
