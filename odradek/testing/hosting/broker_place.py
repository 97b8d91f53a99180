"""What a broker of a test's cluster keeps over its stops, kills and starts: its id, its port, its files, its faults."""

from dataclasses import replace
from typing import Final

from odradek.broker.config.settings import Settings
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.interceptors import Interceptors
from odradek.broker.server import Broker


class BrokerPlace:
    """See the module."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.interceptors: Final = Interceptors()
        """What stands before its handlers."""
        self._memory_disk = MemoryDisk() if settings.data_dirs is None else None

    @property
    def node_id(self) -> int:
        return self.settings.node_id

    @property
    def address(self) -> str:
        """HOST:PORT, which stays the same once it has been started."""
        [listener] = self.settings.listeners
        return listener.address

    @property
    def has_device(self) -> bool:
        """Whether its files are on one, and not in memory."""
        return self._memory_disk is None

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
        here = listener._replace(port=endpoint.port)
        self.settings = replace(self.settings, listeners=[here], advertised={name: here})
