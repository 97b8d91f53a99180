"""`odradek cluster run` as a child process: three brokers that replicate to one another, for tests with real clients.

    with OdradekCluster(tmp_path / "data", "--set", "num.partitions=6") as cluster:
        KafkaProducer(bootstrap_servers=cluster.bootstrap)
        cluster.kill()                                  # all brokers at once
        cluster.start()

New topics have three replicas and `min.insync.replicas=2`. The brokers are 1, 2 and 3, in rack-1 and so on, on ports
next to one another, which are found before the first start; later ones take the same. A broker that dies alone needs
processes of its own: `brokers_on_etcd` in `compat/clusters.py`.
"""

import re
import sys
from pathlib import Path
from typing import Final

from processes.child_process import ChildProcess, ProcessFailed
from processes.free_ports import free_run

READY: Final = re.compile(r"odradek \S+ cluster ready on (?P<addresses>\S+) \(data in .+\)")
BROKERS: Final = 3


class OdradekClusterFailed(ProcessFailed):
    """The cluster did not get ready, or did not end as it should; the text holds what it printed."""


class OdradekCluster(ChildProcess):
    """Three brokers with their data under `data_dir`, with further `options` of `odradek cluster run`."""

    failure = OdradekClusterFailed

    def __init__(
        self,
        data_dir: Path | str,
        *options: str,
        name: str = "odradek-cluster",
        log_file: Path | None = None,
        dies_with_us: bool = False,
    ) -> None:
        """The rest is `ChildProcess`'s."""
        super().__init__(name, log_file=log_file, dies_with_us=dies_with_us)
        self.data_dir = Path(data_dir).resolve()
        self.options = options
        self.host = "127.0.0.1"
        self.port = free_run(BROKERS)
        self.addresses: list[str] = []

    @property
    def bootstrap(self) -> str:
        """All of them."""
        return ",".join(self.addresses)

    def command(self) -> list[str]:
        listen = ["--brokers", str(BROKERS), "--listen", f"{self.host}:{self.port}", "--data-dir", str(self.data_dir)]
        return [sys.executable, "-m", "odradek", "cluster", "run", *listen, *self.options]

    def is_ready_line(self, line: str) -> bool:
        ready = READY.match(line)
        if ready is not None:
            self.addresses = ready["addresses"].split(",")
        return ready is not None
