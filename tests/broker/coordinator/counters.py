"""A machine of the tests' own: counters, by name. Its records are `name -> number`."""

from collections.abc import Sequence

from odradek.broker.coordinator.machine import Now, Outbox, StoredRecord, Waiting
from odradek.broker.coordinator.timers import Timers
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage


class Counters:
    """Adds up; a counter that is `alarm`ed is set to 0 when its time has come."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.timers = Timers[str]()
        self.values: dict[str, int] = {}
        self.pending: dict[int, dict[str, int]] = {}
        self.loaded_at: Now | None = None

    # -- requests ---------------------------------------------------------------------------------------------------

    def add(self, name: str, number: int, waiting: Waiting[int], now: Now, size_bytes: int = 0) -> None:
        del now
        if number == 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "nothing to add")
        self._set(name, self.values.get(name, 0) + number, size_bytes)
        self.outbox.reply(name, waiting, self.values[name])

    def read(self, name: str, waiting: Waiting[int], now: Now) -> None:
        del now
        self.outbox.reply(name, waiting, self.values.get(name, 0))

    def hold(self, name: str, waiting: Waiting[int], delay_ms: int, now: Now) -> None:
        """Answered when the time has come, with a counter that is 0 then."""
        self.timers.set(name, now.monotonic_ms + delay_ms)
        self.held = waiting

    def fail(self, waiting: Waiting[int], now: Now) -> None:
        del waiting, now
        self.values["broken"] = 1
        raise ZeroDivisionError("nobody foresaw this")

    def _set(self, name: str, number: int, size_bytes: int = 0) -> None:
        before = self.values.get(name)
        self.values[name] = number

        def undo() -> None:
            if before is None:
                del self.values[name]
            else:
                self.values[name] = before

        self.outbox.append(name, [StoredRecord(name.encode(), b"%d" % number + b" " * size_bytes)], undo)

    # -- what a shard asks for ----------------------------------------------------------------------------------------

    @property
    def next_deadline_ms(self) -> int | None:
        return self.timers.next_deadline_ms

    def tick(self, now: Now) -> None:
        while (name := self.timers.pop_due(now.monotonic_ms)) is not None:
            self._set(name, 0)
            self.outbox.reply(name, self.held, 0)

    def replay(self, key: bytes, value: bytes | None, producer_id: int) -> str | None:
        name = key.decode()
        if name.startswith("?"):
            return None
        if value == b"damaged":
            raise MalformedMessage("a number that is none")
        number = int(value or b"0")
        if producer_id >= 0:
            self.pending.setdefault(producer_id, {})[name] = number
        else:
            self.values[name] = number
        return name

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> Sequence[str]:
        pending = self.pending.pop(producer_id, {})
        if is_commit:
            self.values |= pending
        return [*pending]

    def loaded(self, now: Now) -> None:
        self.loaded_at = now
