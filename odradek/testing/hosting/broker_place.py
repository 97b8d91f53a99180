"""What a broker of a test's cluster keeps over its stops, kills and starts: its id, its port, its files, its faults."""

from dataclasses import replace
from typing import Final

from odradek.broker.cluster.store import MetadataStore
from odradek.broker.config.settings import Settings
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import Context
from odradek.broker.handling.interceptors import Interceptors
from odradek.broker.server import Broker
from odradek.runtime.environment import Environment
from odradek.testing.faults.cluster_faults import ClusterFaults
from odradek.testing.faults.fault_interceptor import FaultInterceptor


class BrokerPlace:
    """See the module."""

    def __init__(self, settings: Settings, faults: ClusterFaults) -> None:
        """`faults`: those of its cluster."""
        self.settings = settings
        self.interceptors: Final = Interceptors()
        """What stands before its handlers."""
        self._broker: Broker | None = None
        self._faults = faults
        self._interceptor = FaultInterceptor(settings.node_id, faults.table, faults.recorder, self.context)
        self.interceptors.requests = [self._interceptor]
        faults.table.watchers.append(self._faults_changed)
        self._memory_disk = MemoryDisk() if settings.data_dirs is None else None

    @property
    def node_id(self) -> int:
        return self.settings.node_id

    @property
    def address(self) -> str:
        """HOST:PORT as clients are told it, which stays the same once it has been started."""
        [advertised] = self.settings.advertised.values()
        return advertised.address

    @property
    def has_device(self) -> bool:
        """Whether its files are on one, and not in memory."""
        return self._memory_disk is None

    def make_broker(self, environment: Environment, disk: Disk, store: MetadataStore) -> Broker:
        """A new life, to be started. `disk`: over its files."""
        self._broker = Broker(self.settings, environment, disk, store=store, interceptors=self.interceptors)
        return self._broker

    def files(self) -> Disk:
        """For a new life, in whose thread it is called: a disk belongs to one thread. What was written stays."""
        if self._memory_disk is None:
            return FileDisk()
        self._memory_disk = MemoryDisk(former=self._memory_disk)
        return self._memory_disk

    def keep_port(self, broker: Broker) -> None:
        """It has been started, and goes on to listen where it does now."""
        [(name, endpoint)] = broker.bound.items()
        [listener] = self.settings.listeners
        told = self.settings.advertised[name]._replace(port=endpoint.port)
        self.settings = replace(
            self.settings, listeners=[listener._replace(port=endpoint.port)], advertised={name: told}
        )

    def context(self) -> Context:
        """Of its present life, as handlers see it. It belongs to the thread of that."""
        assert self._broker is not None, "its requests are handled by a broker"
        return self._broker.context

    def _faults_changed(self) -> None:
        """To look at connections costs something with each request, and so it is done while somebody asks for it."""
        replies = self._interceptor.replies
        is_asked_for = any(each.fault.corrupts_replies for each in self._faults.table.entries)
        self.interceptors.connections = [replies] if is_asked_for or replies.is_due else []
