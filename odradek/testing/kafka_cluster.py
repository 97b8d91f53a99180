"""`odradek.testing.cluster`: a real cluster for a test, started in some milliseconds and gone afterwards.

with cluster(topics={"orders": 6}) as kafka: ...            # in a test, or around several
async with cluster() as kafka: ...                          # the brokers run in the test's own event loop
kafka = cluster().start(); ...; kafka.stop()                # where there is no `with`: setUpClass, a REPL

@cluster(brokers=1)                                         # around each call; told as `kafka`, if it asks
def test_orders(kafka): ...
"""

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from odradek.testing.cluster_options import BROKERS_DEFAULT, SESSION_MS, ClusterOptions
from odradek.testing.kafka import Kafka
from odradek.testing.modes import started

if TYPE_CHECKING:
    from odradek.testing.async_kafka import AsyncKafka

T = TypeVar("T")

TOLD_AS: Final = "kafka"
RUNS: Final = "this cluster runs already: stop it first, or make another one"
OUTSIDE: Final = (
    "`async with` runs the brokers in the event loop, and this cluster is to be in another process: use `with`, whose "
    "clients may run in the loop"
)


class WrongUse(RuntimeError):
    """A cluster is used in an order in which it cannot be."""


class KafkaCluster:
    """A cluster to be started. See `cluster`."""

    def __init__(self, options: ClusterOptions) -> None:
        self.options: Final = options
        self._running: Kafka | None = None
        self._in_loop: AsyncKafka | None = None

    def start(self) -> Kafka:
        """Returns when all brokers accept connections and the topics have leaders. Raises WrongUse when it runs; what
        brokers raise that cannot start, with a sentence each; OSError. Nothing is left of it then."""
        if self._running is not None:
            raise WrongUse(RUNS)
        self._running = kafka = Kafka(self.options, *started(self.options))
        try:
            kafka.make_topics()
        except BaseException:
            self.stop()
            raise
        return kafka

    def stop(self) -> None:
        """Ends it. No error when it does not run."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def __enter__(self) -> Kafka:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> "AsyncKafka":
        """As `start`, in the running event loop. Raises the same."""
        from odradek.testing.async_kafka import AsyncKafka
        from odradek.testing.hosting.cluster_in_loop import ClusterInLoop

        options = self.options
        if self._in_loop is not None:
            raise WrongUse(RUNS)
        if options.is_elsewhere:
            raise WrongUse(OUTSIDE)
        hosted = ClusterInLoop(options.settings(), options.directory)
        await hosted.start()
        self._in_loop = kafka = AsyncKafka(options, hosted)
        try:
            await kafka.make_topics()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return kafka

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running, self._in_loop = self._in_loop, None
        if running is not None:
            await running.stop()

    def __call__(self, function: Callable[..., T]) -> Callable[..., T]:
        """A decorator: the function runs with a cluster of its own, which its parameter `kafka` gets, if it has one."""
        signature = inspect.signature(function)
        is_told = TOLD_AS in signature.parameters

        @functools.wraps(function)
        def with_cluster(*args: Any, **kwargs: Any) -> T:
            with KafkaCluster(self.options) as kafka:
                return function(*args, **kwargs, **({TOLD_AS: kafka} if is_told else {}))

        # Test runners read from it what the function wants of them.
        left = [each for name, each in signature.parameters.items() if name != TOLD_AS]
        with_cluster.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return with_cluster


def cluster(
    brokers: int = BROKERS_DEFAULT,
    *,
    topics: Mapping[str, int] | Sequence[str] = (),
    config: Mapping[str, str] | None = None,
    act_as: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    session_ms: float = SESSION_MS,
    port: int = 0,
    subprocess: bool = False,
    processes: bool = False,
    etcd: str | None = None,
) -> KafkaCluster:
    """A cluster of so many brokers, each in a thread of its own, which keeps everything in memory.

    `topics`: made at its start, names with their numbers of partitions, or names alone for one partition each.
    `config`: options of the brokers under Kafka's names. `act_as`: a release of Apache Kafka, such as "3.9", of which
    it tells clients the versions. `data_dir`: where its logs are kept instead. `session_ms`: after so long the others
    miss a broker that is killed or paused. `port`: of the first broker, the others following; 0: any. `subprocess`: the
    threads are those of a child process, which has the test kit's clients, too. `processes`: each broker is a process
    of its own, with files. `etcd`: so, too, and their metadata is in a given etcd, HOST:PORT of its members.

    Raises OptionsRefused, ConfigError.
    """
    by_name = {**topics} if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
    return KafkaCluster(
        ClusterOptions(
            brokers=brokers,
            topics=by_name,
            config=config or {},
            act_as=act_as,
            data_dir=data_dir,
            session_ms=session_ms,
            port=port,
            subprocess=subprocess,
            processes=processes,
            etcd=etcd,
        )
    )
