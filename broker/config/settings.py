"""What a broker is started with: its listeners, its directories, its id, and its options."""

from collections.abc import Sequence
from dataclasses import dataclass

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener
from odradek.broker.config.security_protocol import SecurityProtocol, parse_protocol_map, protocol_of


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line decides. `data_dirs` None keeps everything in memory."""

    listeners: list[Listener]
    advertised: dict[str, Listener]
    data_dirs: Sequence[str] | None
    node_id: int
    config: BrokerConfig
    metrics: Listener | None = None

    @property
    def broker_listener(self) -> str:
        """The listener that brokers use among themselves (`inter.broker.listener.name`); by default the first."""
        return (self.config.inter_broker_listener_name or self.listeners[0].name).upper()

    def protocol(self, listener: Listener) -> SecurityProtocol:
        """What is spoken on one of the listeners (`listener.security.protocol.map`)."""
        return protocol_of(listener.name, parse_protocol_map(self.config.listener_security_protocol_map))
