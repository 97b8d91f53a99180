"""Who has been heard of: the controller's judgement of the other brokers. Pure.

A broker is silent when nothing was heard of it for `broker.session.timeout.ms`. A connection that is reset is a hint,
after which it is asked whether anybody listens there at all (controller/fencing.py); it decides nothing by itself.

A controller that was itself held up has heard nobody meanwhile: `held_up` gives everybody the time back. One that
hears less than half of its cluster, itself among it, is more likely cut off than alone among the dead.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Session(NamedTuple):
    """A broker at one epoch, and until when something must be heard of it."""

    broker_epoch: int
    deadline_ms: float
    is_heard: bool = False
    """Something has come at this epoch."""


class Liveness:
    """The sessions of the registered brokers, but for the controller's own."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._sessions: dict[int, Session] = {}

    def follow(self, epochs: Mapping[int, int], now_ms: float, timeout_ms: float) -> tuple[int, ...]:
        """Takes over who is registered, by id and epoch; returns those that were not known yet."""
        new: list[int] = []
        for broker_id in [each for each in self._sessions if each not in epochs]:
            del self._sessions[broker_id]
        for broker_id, epoch in epochs.items():
            session = self._sessions.get(broker_id)
            if broker_id != self._node_id and (session is None or session.broker_epoch != epoch):
                self._sessions[broker_id] = Session(epoch, now_ms + timeout_ms)
                new.append(broker_id)
        return tuple(new)

    def heard(self, broker_id: int, broker_epoch: int, now_ms: float, timeout_ms: float) -> bool:
        """Something came from a broker; False where that one is not registered with this epoch."""
        session = self._sessions.get(broker_id)
        if session is None or session.broker_epoch != broker_epoch:
            return False
        self._sessions[broker_id] = Session(broker_epoch, now_ms + timeout_ms, is_heard=True)
        return True

    def held_up(self, delay_ms: float) -> None:
        """Nobody could be heard for so long."""
        for broker_id, session in self._sessions.items():
            self._sessions[broker_id] = session._replace(deadline_ms=session.deadline_ms + delay_ms)

    def epoch_of(self, broker_id: int) -> int | None:
        session = self._sessions.get(broker_id)
        return None if session is None else session.broker_epoch

    def silent(self, now_ms: float) -> list[tuple[int, int]]:
        """Id and epoch of those of whom nothing was heard in time."""
        return [
            (each, session.broker_epoch) for each, session in self._sessions.items() if session.deadline_ms <= now_ms
        ]

    def is_minority(self, now_ms: float) -> bool:
        """Whether the controller, and those of whom it has heard in time, are less than half of the registered."""
        heard = [each for each in self._sessions.values() if each.is_heard and each.deadline_ms > now_ms]
        return 2 * (1 + len(heard)) < 1 + len(self._sessions)

    @property
    def next_deadline_ms(self) -> float | None:
        """Before that nobody is silent; None where nobody is watched."""
        return min((session.deadline_ms for session in self._sessions.values()), default=None)

    def clear(self) -> None:
        self._sessions.clear()
