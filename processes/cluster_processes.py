"""The processes of a cluster under test: brokers and etcd, each with its log in a file, and none of them left over.

    with Processes(tmp_path) as processes:
        etcd = processes.etcd()
        processes.start(etcd)
        brokers = [processes.broker(number, "--metadata", etcd.address("/odradek")) for number in (1, 2, 3)]
        processes.start(*brokers)
        brokers[0].kill()                       # or pause and resume, terminate, start (child_process.py)

`within` is a namespace's command (namespaces.py). Where brokers are to meet through a relay (relay.py), each has a port
before it starts, so that its route can be made: `processes.broker(1, advertise=…)`.

When the block fails, the end of each log is shown with the error. When it ends well, so must what still runs: a broker
that had ended by itself is a failure. Who kills the tests themselves kills their processes, too.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from processes.child_process import ChildProcess, start_together
from processes.etcd_process import Etcd
from processes.odradek_broker import LOOPBACK, OdradekBroker

P = TypeVar("P", bound=ChildProcess)

SHOWN_CHARACTERS: Final = 3_000


class Processes:
    """Those that were made here. Data, and logs as `<name>.log`, are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.all: list[ChildProcess] = []

    def broker(
        self,
        node_id: int,
        *options: str,
        host: str = LOOPBACK,
        port: int = 0,
        advertise: Callable[[int], str] | None = None,
        within: Sequence[str] = (),
    ) -> OdradekBroker:
        """A broker that has not been started. `options` are those of `odradek serve`. `port`: as
        `OdradekBroker` has it. `advertise` is given the port and says which address clients are told."""
        name = f"broker-{node_id}"
        broker = OdradekBroker(
            self.directory / name,
            *("--node-id", str(node_id), *options),
            name=name,
            host=host,
            port=port,
            within=within,
            log_file=self.log_file(name),
            dies_with_us=True,
        )
        if advertise is not None:
            broker.options = ("--advertise", advertise(broker.port), *broker.options)
        return self.add(broker)

    def etcd(self, *options: str, host: str = LOOPBACK, within: Sequence[str] = ()) -> Etcd:
        """etcd, not started."""
        return self.add(
            Etcd(
                self.directory / "etcd",
                *options,
                host=host,
                within=within,
                log_file=self.log_file("etcd"),
                dies_with_us=True,
            )
        )

    def add(self, process: P) -> P:
        """One that was made elsewhere is treated as those that are made here."""
        self.all.append(process)
        return process

    def log_file(self, name: str) -> Path:
        """Where a process of that name writes its log."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return self.directory / f"{name}.log"

    def start(self, *processes: ChildProcess) -> None:
        """All at the same time. Raises ProcessFailed for the first that does not get ready."""
        start_together(*processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as closing:
            for process in self.all:
                closing.callback(process.close)
            # Last made, first stopped: brokers before the etcd that they need to stop well.
            for process in reversed(self.all):
                if kind is None and process.was_started:
                    process.stop()
        if error is not None:
            for process in self.all:
                where = self.directory / f"{process.name}.log"
                error.add_note(f"--- the end of {where}\n{process.output[-SHOWN_CHARACTERS:]}")
