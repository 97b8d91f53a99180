"""Odradek itself as a child process: started, asked where it listens, killed without mercy, and started again.

    with OdradekBroker(tmp_path / "data", "--set", "num.partitions=3") as broker:
        KafkaProducer(bootstrap_servers=broker.bootstrap)
        broker.kill()
        odradek.broker.membership.startup_losses()

It counts as started when it has printed its ready line, and its address is taken from there: all its starts take the
same port. How it is stopped, paused and cleaned up stands in `child_process.py`.
(`spark_jobs/demo` has its own, for it does not import tests.)
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from processes.child_process import REPOSITORY, ChildProcess, ProcessFailed
from processes.free_ports import free_ports

__all__ = ["LOOPBACK", "READY", "REPOSITORY", "OdradekBroker", "OdradekFailed"]

LOOPBACK: Final = "127.0.0.1"
READY: Final = re.compile(r"odradek (?P<version>\S+) ready on (?P<host>\S+):(?P<port>\d+)\b.* \(node \d+, data in .+\)")


class OdradekFailed(ProcessFailed):
    """The broker did not get ready, or did not end as it should; the text holds what it printed."""


def settings_words(settings: Mapping[str, str]) -> list[str]:
    """The words of a command line that set these options."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


class OdradekBroker(ChildProcess):
    """A broker on `data_dir`, with further `options` of `odradek serve`. `kill`, `terminate` and `start` alternate."""

    failure = OdradekFailed

    def __init__(
        self,
        data_dir: Path | str,
        *options: str,
        name: str = "odradek-broker",
        host: str = LOOPBACK,
        port: int = 0,
        within: Sequence[str] = (),
        log_file: Path | None = None,
        dies_with_us: bool = False,
    ) -> None:
        """`port` 0: one of the loopback's that is free now (free_ports.py); at another address, or in a namespace, one
        that is free at the first start. The rest is `ChildProcess`'s."""
        super().__init__(name, within=within, log_file=log_file, dies_with_us=dies_with_us)
        self.data_dir = Path(data_dir).resolve()
        self.options = options
        self.host = host
        self.port = free_ports(1)[0] if port == 0 and host == LOOPBACK and not within else port
        self.ready_line = ""

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def command(self) -> list[str]:
        listen = ["--listen", f"{self.host}:{self.port}", "--data-dir", str(self.data_dir)]
        return [sys.executable, "-m", "odradek", "serve", *listen, *self.options]

    def is_ready_line(self, line: str) -> bool:
        self.ready_line = line
        ready = READY.match(line)
        if ready is not None:
            self.host, self.port = ready["host"], int(ready["port"])
        return ready is not None
