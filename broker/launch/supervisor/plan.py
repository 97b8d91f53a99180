"""What a cluster of processes is to be: how many brokers, where each listens, and what clients are told. Pure.

One `--listen` is the first broker's, and the others follow on the ports behind it; or there is one for each broker, in
their order. The same counts for `--advertise`, which a cluster behind NAT or in a container needs: a client connects to
each broker, so each has an address, and a port that is published.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import PORT_MAX, Listener
from odradek.broker.config.option import ByReference
from odradek.broker.config.settings import told_broker_listener
from odradek.broker.directories.cluster_layout import broker_directory
from odradek.broker.launch import protection
from odradek.broker.launch.listen_options import (
    ListenerError,
    check_inter_broker,
    check_listeners,
    check_sasl,
)
from odradek.broker.launch.memory_defaults import with_defaults

ONE_REPLICA: Final = {"default.replication.factor": "1", "min.insync.replicas": "1"}
"""Copies on one disk are no safety, and what they cost is half of the speed."""
INTERNAL_FACTORS: Final = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
INTERNAL_REPLICAS_MAX: Final = 3
"""As these options have it by default."""
DESCRIPTORS_EACH: Final = 4
DESCRIPTORS_BESIDE: Final = 64
"""Of the supervisor: for each broker, and for everything else."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says. `data_dir` None: everything in memory."""

    listeners: Sequence[Listener]
    advertised: Sequence[Listener]
    data_dir: str | None
    static: Mapping[str, str] = field(repr=False)  # there may be secrets
    metrics: Listener | None = None
    log_levels: Mapping[str, str] = field(default_factory=dict[str, str])
    log_format: str = "text"


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """One broker: where it listens, and what clients are told to connect to."""

    node_id: int
    listener: Listener
    advertised: Listener

    def begin(
        self, options: Options, defaults: Mapping[str, str], store: str, port: int, metrics_port: int | None
    ) -> Mapping[str, Any]:
        """What its process is told (control.py). `defaults`: of topics. `store`: its address. `port`: where it listens,
        if that is any free one at its first start. `metrics_port`: of its own page, None for no page."""
        data_dirs = {} if options.data_dir is None else {"log.dirs": broker_directory(options.data_dir, self.node_id)}
        static = {
            **internal_factors(replicas_of(options, defaults)),
            **defaults,
            **with_defaults(options.static, memory=options.data_dir is None),
            **data_dirs,
            "node.id": str(self.node_id),
            "broker.rack": f"rack-{self.node_id}",
            "listeners": str(self.listener._replace(port=port)),
            "advertised.listeners": str(self.advertised._replace(port=self.advertised.port or port)),
            "metadata.store": store,
        }
        return {
            "node_id": self.node_id,
            "static": static,
            "by_reference": [name for name, text in static.items() if isinstance(text, ByReference)],
            "memory": options.data_dir is None,
            "metrics": None if metrics_port is None else f"127.0.0.1:{metrics_port}",
            "log_levels": dict(options.log_levels),
            "log_format": options.log_format,
        }


def plan(options: Options, ids: Sequence[int]) -> list[BrokerPlan]:
    """The brokers with these ids. Raises ListenerError, ConfigError."""
    count = len(ids)
    listeners = _one_each(options.listeners, count, "--listen")
    advertised = _one_each(options.advertised, count, "--advertise") if options.advertised else listeners
    bound: set[tuple[str, int]] = set()
    brokers: list[BrokerPlan] = []
    for node_id, listener, told in zip(ids, listeners, advertised, strict=True):
        if listener.port and (listener.host, listener.port) in bound:
            raise ListenerError(f"--listen {listener.address}: two brokers cannot listen at one address")
        bound.add((listener.host, listener.port))
        _, by_name = check_listeners([listener], [] if told is listener else [told])
        brokers.append(BrokerPlan(node_id, listener, by_name[listener.name]))
    config = BrokerConfig(dict(options.static))
    listening = [each.listener for each in brokers]
    option, name = told_broker_listener(config)
    check_inter_broker(name, listening, option)
    protection.check(listening, config, options.metrics)
    if brokers:
        check_sasl(listening, config, brokers[0].listener.name)
    return brokers


def _one_each(given: Sequence[Listener], count: int, option: str) -> list[Listener]:
    """Raises ListenerError."""
    if len(given) == count:
        return list(given)
    if len(given) != 1:
        raise ListenerError(
            f"{option} is given {len(given)} times, and there are {count} brokers: give it once for each broker, or "
            "once, and the others follow on the ports behind it"
        )
    first = given[0]
    if first.port and first.port + count - 1 > PORT_MAX:
        raise ListenerError(
            f"{option} {first.address}: {count} brokers would need the ports up to {first.port + count - 1}, and there "
            f"are {PORT_MAX}: begin at {PORT_MAX - count + 1} at the latest, or run fewer brokers"
        )
    return [first._replace(port=first.port + number if first.port else 0) for number in range(count)]


def descriptors_problem(count: int, limit: int) -> str | None:
    """Why so many brokers cannot be run under the limit of open files of this process; None: they can."""
    needed = DESCRIPTORS_BESIDE + DESCRIPTORS_EACH * count
    if needed <= limit:
        return None
    most = max(0, (limit - DESCRIPTORS_BESIDE) // DESCRIPTORS_EACH)
    return (
        f"{count} brokers need {needed} open files of their supervisor, and the limit is {limit}: raise it "
        f"(ulimit -n), or run {most} brokers at most"
    )


def topic_defaults(kept: Mapping[str, str] | None, count: int, *, is_new: bool) -> Mapping[str, str]:
    """What new topics get, unless an option says otherwise. `kept`: what the directory says. A directory that brokers
    in one process have made, and that says nothing, goes on as it was."""
    if kept is not None:
        return kept
    if is_new:
        return ONE_REPLICA
    return {"default.replication.factor": str(min(count, 3)), "min.insync.replicas": "2" if count >= 3 else "1"}


def internal_factors(replicas: int) -> dict[str, str]:
    """Options by which internal topics get as many replicas as others do, three at most. Brokers raise internal topics
    to what these options say: with more replicas than others have they could not be moved back to a single broker."""
    return dict.fromkeys(INTERNAL_FACTORS, str(min(replicas, INTERNAL_REPLICAS_MAX)))


def replicas_of(options: Options, defaults: Mapping[str, str]) -> int:
    """How many replicas new topics get. Raises ConfigError."""
    return BrokerConfig({**defaults, **options.static}).default_replication_factor
