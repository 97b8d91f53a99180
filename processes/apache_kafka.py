"""Apache Kafka itself, as the tests' oracle and the benchmarks' neighbour: one KRaft node, and its command-line tools.

    with ApacheKafka(properties={"num.partitions": "3"}) as kafka:
        KafkaProducer(bootstrap_servers=kafka.bootstrap)

    with ApacheKafka(listeners=["SASL_SSL"], scram=[("SCRAM-SHA-256", "alice", "secret")]) as kafka:
        kafka.ports["SASL_SSL"]                        # beside the plaintext one, which is there always

`python -m processes.apache_kafka` is for a set-up: it fetches the jars, and makes later starts quick.

The node listens on free loopback ports and keeps its data in a temporary directory. It is ready when it has answered
ApiVersions and lists itself in Metadata. It is stopped by its own process id, whatever happens.
"""

import atexit
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from processes.class_archive import archive_path, class_archive
from processes.free_ports import free_ports
from processes.jars import APACHE_KAFKA, java, resolve
from processes.tool_jvm import ENTRIES, ToolJvm

CLUSTER_ID = "T2RyYWRlay10ZXN0cy0wMQ"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
ATTEMPTS = 3  # a port that was free may be taken before Kafka binds it

# A short-lived JVM on a small machine: start fast rather than run fast. Benchmarks pass Kafka's own options instead.
QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xlog:cds*=off")
# What kafka-run-class.sh and kafka-server-start.sh set, for a fair comparison.
OWN_JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)

TOOL_HEAP = ("-Xmx512m",)
TOOL_LOG_LEVEL = "warn"

SINGLE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class ApacheKafkaFailed(Exception):
    """Kafka or one of its tools did not do what it was started for; the text holds what it printed."""


class ApacheKafka:
    """A running Apache Kafka. `stop`, `kill` and `start` may be called in between; the data stays until the end."""

    def __init__(
        self,
        *,
        properties: Mapping[str, str] | None = None,
        heap: str = "512m",
        log_level: str = "warn",
        jvm_options: Sequence[str] | None = None,
        directory: Path | None = None,
        listeners: Sequence[str] = (),
        scram: Sequence[tuple[str, str, str]] = (),
        controller_port: int = 0,
    ) -> None:
        """`properties` are added to server.properties and win over ours; `jvm_options` replace those of a quick start,
        and `directory` the temporary one.

        `listeners`: security protocols beside PLAINTEXT, each a listener of that name. `scram`: mechanism, user and
        password of those who exist from the start. `controller_port`: of its controller; 0: one that is free.
        """
        self.properties = dict(properties or {})
        self.heap = heap
        self.log_level = log_level
        self.jvm_options = tuple(jvm_options) if jvm_options is not None else quick_jvm()
        self.host = "127.0.0.1"
        self.port = 0
        self.ports = dict.fromkeys(listeners, 0)
        self._scram = tuple(scram)
        self._controller_port = controller_port
        self._temporary = tempfile.TemporaryDirectory(prefix="apache-kafka-") if directory is None else None
        self.directory = Path(self._temporary.name) if self._temporary is not None else directory or Path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def data_directory(self) -> Path:
        """Where the partitions lie, as `<topic>-<partition>`. Stop Kafka before reading them."""
        return self.directory / "data"

    @property
    def pid(self) -> int:
        assert self._process is not None, "Apache Kafka is not running"
        return self._process.pid

    @property
    def output(self) -> str:
        """What the node printed, of all its runs."""
        printed = self.directory / "output.txt"
        return printed.read_text(errors="replace") if printed.exists() else ""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._clean_up()

    def start(self) -> None:
        """Starts the node, on the port of its last run if there was one, and returns when it is ready."""
        assert self._process is None, "Apache Kafka is running already"
        self.directory.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, ATTEMPTS + 1):
            if self.port == 0:
                self._write_properties()
                if not (self.data_directory / "meta.properties").exists():
                    self._format()
            try:
                self._launch()
                return
            except ApacheKafkaFailed:
                self.kill()
                if attempt == ATTEMPTS or "Address already in use" not in self.output:
                    raise
                self.port = 0

    def stop(self) -> None:
        """Stops the node as its own script does, by SIGTERM, and by SIGKILL when it does not end in time."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the node by SIGKILL."""
        self._end(signal.SIGKILL)

    def _end(self, by: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(by)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _clean_up(self) -> None:
        self.kill()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _write_properties(self) -> None:
        self.port, controller_port, *ports = free_ports(2 + len(self.ports))
        controller_port = self._controller_port or controller_port
        self.ports = dict(zip(self.ports, ports, strict=True))
        listeners = [f"{name}://{self.host}:{port}" for name, port in (("PLAINTEXT", self.port), *self.ports.items())]
        protocols = ["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in ("PLAINTEXT", *self.ports))]
        properties = SINGLE_NODE | {
            "listeners": ",".join((*listeners, f"CONTROLLER://{self.host}:{controller_port}")),
            "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(protocols),
            "controller.quorum.voters": f"1@{self.host}:{controller_port}",
            "log.dirs": str(self.data_directory),
        }
        properties |= self.properties
        lines = [f"{name}={value}\n" for name, value in properties.items()]
        (self.directory / "server.properties").write_text("".join(lines))

    def _format(self) -> None:
        settings = str(self.directory / "server.properties")
        users: list[str] = []
        for mechanism, name, password in self._scram:
            users += ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        run_tool("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", settings, *users)

    def _launch(self) -> None:
        command = java_command(
            "kafka.Kafka",
            str(self.directory / "server.properties"),
            jvm_options=(f"-Xms{self.heap}", f"-Xmx{self.heap}", *self.jvm_options),
            log_level=self.log_level,
        )
        with (self.directory / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=self.directory
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(self.host, self.port):
            if (code := self._process.poll()) is not None:
                raise ApacheKafkaFailed(f"Apache Kafka ended with {code}:\n{self.output[-8000:]}")
            if time.monotonic() > deadline:
                raise ApacheKafkaFailed(f"Apache Kafka is not ready after {START_TIMEOUT_S} s:\n{self.output[-8000:]}")
            time.sleep(0.02)  # between two questions, not instead of them


def run_tool(
    main_class: str, *args: str, check: bool = True, timeout_s: float = 300.0, log_level: str = TOOL_LOG_LEVEL
) -> str:
    """Runs one of Kafka's command-line classes and returns all that it printed, errors too: in a JVM of its own, or in
    one for several of them (`tool_jvm.py`), where nothing shows the difference.

    Raises ApacheKafkaFailed when it ends with another code than 0, unless `check` is off.
    """
    if (
        main_class in ENTRIES
        and log_level == TOOL_LOG_LEVEL
        and (said := tool_jvm().run(main_class, *args)) is not None
    ):
        return said
    command = java_command(main_class, *args, jvm_options=(*TOOL_HEAP, *quick_jvm()), log_level=log_level)
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout_s,
        check=False,
    )
    output = done.stdout.decode(errors="replace")
    if check and done.returncode != 0:
        raise ApacheKafkaFailed(f"{main_class} ended with {done.returncode}:\n{output}")
    return output


def quick_jvm() -> tuple[str, ...]:
    """Options of a JVM that is to start fast: with its classes made ready, where they are. Raises JarsUnresolved."""
    archive = class_archive()
    return QUICK_JVM if archive is None else (*QUICK_JVM, f"-XX:SharedArchiveFile={archive}")


@cache
def tool_jvm() -> ToolJvm:
    """For the tools that this process runs."""
    jvm = ToolJvm(kafka_classpath(), java(), (*TOOL_HEAP, *quick_jvm(), *logging_options(TOOL_LOG_LEVEL)))
    atexit.register(jvm.stop)
    return jvm


def java_command(
    main_class: str,
    *args: str,
    jvm_options: Sequence[str],
    log_level: str,
    jars: tuple[tuple[str, ...], ...] = (APACHE_KAFKA,),
) -> list[str]:
    """The command line of a class of these sets of jars, of which the first that has a class counts. Raises
    JarsUnresolved."""
    return [java(), *jvm_options, *logging_options(log_level), "-cp", classpath(*jars), main_class, *args]


def kafka_classpath() -> str:
    return classpath(APACHE_KAFKA)


def classpath(*sets: tuple[str, ...]) -> str:
    """Raises JarsUnresolved."""
    return os.pathsep.join(str(jar) for coordinates in sets for jar in resolve(*coordinates))


def logging_options(level: str) -> tuple[str, ...]:
    return f"-Dorg.slf4j.simpleLogger.defaultLogLevel={level}", "-Dorg.slf4j.simpleLogger.showDateTime=true"


def answers(host: str, port: int) -> bool:
    """Whether a Kafka server there answers ApiVersions v0 without an error and lists a broker in Metadata v1."""
    try:
        with socket.create_connection((host, port), timeout=5.0) as sock:
            versions = ask(sock, api_key=18, api_version=0, body=b"")
            (error_code,) = struct.unpack_from(">h", versions)
            metadata = ask(sock, api_key=3, api_version=1, body=struct.pack(">i", 0))
            (broker_count,) = struct.unpack_from(">i", metadata)
    except (OSError, struct.error):
        return False
    return bool(error_code == 0 and broker_count > 0)


def ask(sock: socket.socket, *, api_key: int, api_version: int, body: bytes) -> bytes:
    """Sends a request with header v1 and returns the body of its response. Raises OSError when the peer goes away."""
    request = struct.pack(">hhih", api_key, api_version, 1, 0) + body
    sock.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", receive(sock, 4))
    return receive(sock, size)[4:]


def receive(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = sock.recv(size - len(parts))
        if not part:
            raise ConnectionError("closed by the peer")
        parts += part
    return bytes(parts)


def main() -> None:
    """Gets over with what the first test would wait for: fetches the jars, and has a node archive its classes."""
    path = archive_path()
    if not path.exists():
        partial = path.with_suffix(f".{os.getpid()}")
        with ApacheKafka(jvm_options=(*QUICK_JVM, f"-XX:ArchiveClassesAtExit={partial}")):
            pass
        if partial.exists():  # a JVM without an archive of its own writes none
            partial.replace(path)


if __name__ == "__main__":
    main()
