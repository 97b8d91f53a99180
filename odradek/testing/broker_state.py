"""What a broker of a test's cluster is doing, in whatever process it runs."""

from enum import Enum, auto


class BrokerState(Enum):
    """What a broker is doing."""

    DOWN = auto()
    RUNNING = auto()
    PAUSED = auto()


class WrongBrokerState(RuntimeError):
    """What was asked of a broker does not go with what it is doing."""
