"""What a broker is started with: its listeners, its directories, its id, and its options."""

from collections.abc import Sequence
from dataclasses import dataclass

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.broker_options import BrokerOptions
from odradek.broker.config.listeners import Listener
from odradek.broker.config.option import ConfigError
from odradek.broker.config.security_protocol import SecurityProtocol, parse_protocol_map, protocol_of

INTER_BROKER_LISTENER = BrokerOptions.inter_broker_listener_name.name
INTER_BROKER_PROTOCOL = BrokerOptions.security_inter_broker_protocol.name


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
        """The listener that brokers use among themselves; by default the first."""
        _, name = told_broker_listener(self.config)
        return (name or self.listeners[0].name).upper()

    def protocol(self, listener: Listener) -> SecurityProtocol:
        """What is spoken on one of the listeners (`listener.security.protocol.map`)."""
        return protocol_of(listener.name, parse_protocol_map(self.config.listener_security_protocol_map))


def told_broker_listener(config: BrokerConfig) -> tuple[str, str | None]:
    """The option that says which listener brokers use among themselves, and its name in upper case; None: neither of
    the two is set. Raises ConfigError where both are (KafkaConfig.getInterBrokerListenerNameAndSecurityProtocol)."""
    name = config.inter_broker_listener_name
    if not config.is_set(INTER_BROKER_PROTOCOL):
        return INTER_BROKER_LISTENER, name.upper() if name else None
    if config.is_set(INTER_BROKER_LISTENER):
        raise ConfigError(
            f"Only one of {INTER_BROKER_LISTENER} and {INTER_BROKER_PROTOCOL} should be set: the first names a "
            "listener, and the second means the one that is named like the protocol."
        )
    return INTER_BROKER_PROTOCOL, config.security_inter_broker_protocol
