"""All quotas of requests of one broker: what clients use is charged here, and how long they are to be silent comes out.

| kind | what is charged | silent for |
|---|---|---|
| `producer_byte_rate` | bytes of Produce requests | as long as it takes (rate.py) |
| `consumer_byte_rate` | bytes of answers to Fetches of consumers; those that are not sent are taken back | the same |
| `request_percentage` | time of the loop's thread, 100 is all of it | at most one window |
| `controller_mutation_rate` | partitions created and deleted (KIP-599) | until nothing is owed (token_bucket.py) |

Quotas are each broker's: a client that uses three has three times as much. They exist only while some are set
(handling/context.py): a broker without any pays nothing for them.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from odradek.broker.cluster.quotas import EntityQuotas, QuotaEntity
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.quotas.limits import Limits, Owner
from odradek.broker.quotas.meters import Meter, Meters
from odradek.broker.quotas.rate import INT_MAX, MS_PER_S, Rate, Windows
from odradek.broker.quotas.token_bucket import TokenBucket

PERCENT: Final = 100.0


class Kind(Enum):
    """Of a rate."""

    PRODUCER = "producer_byte_rate"
    CONSUMER = "consumer_byte_rate"
    REQUEST = "request_percentage"


MUTATION: Final = "controller_mutation_rate"


class Client(NamedTuple):
    """Who asks, as quotas see it: the name of its principal, and what it calls itself."""

    user: str
    client_id: str


class Use(NamedTuple):
    """What one owner of a limit uses of it."""

    kind: str
    owner: Owner
    amount: float
    """A second; of mutations, the tokens that are left."""
    limit: float
    throttled_ms: float
    """For how long it was told to be silent, on an average of the times that it was."""


class RateQuota:
    """One kind of rate."""

    __slots__ = ("_limits", "_meters", "_silence_ms_max", "_windows", "kind")

    def __init__(self, kind: Kind, windows: Windows) -> None:
        self.kind = kind
        self._windows = windows
        self._limits = Limits({}, kind.value)
        self._meters = Meters[Rate](partial(Rate, windows), windows.span_ms)
        self._silence_ms_max = windows.size_ms if kind is Kind.REQUEST else INT_MAX

    @property
    def is_set(self) -> bool:
        return bool(self._limits)

    def configure(self, quotas: Mapping[QuotaEntity, EntityQuotas]) -> None:
        """These limits count from now on; what was used stays."""
        self._limits = Limits(quotas, self.kind.value)

    def charge(self, client: Client, amount: float, now_ms: int) -> int:
        """For how long the client is to be silent after this, in ms; 0: it need not be."""
        if (found := self._limits.of(*client)) is None:
            return 0
        owner, limit = found
        meter = self._meters.of(owner, limit, now_ms)
        meter.stat.record(amount, now_ms)
        silence_ms = min(meter.stat.silence_ms(limit, now_ms), self._silence_ms_max)
        if silence_ms > 0:
            meter.silence(silence_ms, now_ms)
        return silence_ms

    def note(self, client: Client, amount: float, now_ms: int) -> None:
        """Counts what the next request is charged for; negative: what does not count after all."""
        if (found := self._limits.of(*client)) is not None:
            owner, limit = found
            self._meters.of(owner, limit, now_ms).stat.record(amount, now_ms)

    def at_once(self, client: Client) -> int:
        """The most that does not make a client silent that has used nothing."""
        if (found := self._limits.of(*client)) is None:
            return INT_MAX
        return int(min(found[1] * (self._windows.number - 1) * self._windows.size_ms / MS_PER_S, INT_MAX))

    def is_unused(self, client: Client, now_ms: int) -> bool:
        """Whether nothing that its limit is shared by counts any more."""
        if (found := self._limits.of(*client)) is None or (meter := self._meters.peek(found[0])) is None:
            return True
        return meter.stat.per_second(now_ms) <= 0

    def silent_until_ms(self, client: Client) -> int:
        """Until when it is to be silent, since it, or somebody who shares its limit, was told so."""
        if (found := self._limits.of(*client)) is None or (meter := self._meters.peek(found[0])) is None:
            return 0
        return meter.silent_until_ms

    def uses(self, count: int, now_ms: int) -> Iterator[Use]:
        """Of those that used something last, so many at most."""
        for owner, meter in self._meters.busiest(count):
            yield Use(self.kind.value, owner, meter.stat.per_second(now_ms), meter.limit, _average_ms(meter))


class MutationQuota:
    """Changes of the cluster's metadata."""

    __slots__ = ("_limits", "_meters")

    def __init__(self, windows: Windows) -> None:
        self._limits = Limits({}, MUTATION)
        self._meters = Meters[TokenBucket](partial(TokenBucket, windows), windows.span_ms)

    @property
    def is_set(self) -> bool:
        return bool(self._limits)

    def configure(self, quotas: Mapping[QuotaEntity, EntityQuotas]) -> None:
        """As `RateQuota.configure`."""
        self._limits = Limits(quotas, MUTATION)

    def charge(self, client: Client, partitions: int, now_ms: int, *, is_strict: bool) -> int:
        """For how long the client is to be silent, in ms; 0: it need not be. Strict: who owes may do nothing, and is
        charged for nothing."""
        if (found := self._limits.of(*client)) is None:
            return 0
        owner, limit = found
        meter = self._meters.of(owner, limit, now_ms)
        bucket = meter.stat
        if not is_strict:
            bucket.record(partitions, limit, now_ms)
        silence_ms = bucket.silence_ms(limit, now_ms)
        if silence_ms > 0:
            meter.silence(silence_ms, now_ms)
        elif is_strict:
            bucket.record(partitions, limit, now_ms)
        return silence_ms

    def uses(self, count: int, now_ms: int) -> Iterator[Use]:
        """As `RateQuota.uses`."""
        for owner, meter in self._meters.busiest(count):
            yield Use(MUTATION, owner, meter.stat.tokens(meter.limit, now_ms), meter.limit, _average_ms(meter))


class ClientQuotas:
    """Of one broker."""

    __slots__ = ("consumer", "kinds", "mutation", "producer", "request")

    def __init__(self, windows: Windows, mutation_windows: Windows) -> None:
        """`windows`: of rates."""
        self.producer = RateQuota(Kind.PRODUCER, windows)
        self.consumer = RateQuota(Kind.CONSUMER, windows)
        self.request = RateQuota(Kind.REQUEST, windows)
        self.mutation = MutationQuota(mutation_windows)
        self.kinds: tuple[RateQuota | MutationQuota, ...] = (self.producer, self.consumer, self.request, self.mutation)

    @classmethod
    def of(cls, options: BrokerConfig) -> "ClientQuotas":
        """By the options of a broker."""
        return cls(
            Windows.of_seconds(options.quota_window_num, options.quota_window_size_seconds),
            Windows.of_seconds(options.controller_quota_window_num, options.controller_quota_window_size_seconds),
        )

    def configure(self, quotas: Mapping[QuotaEntity, EntityQuotas]) -> None:
        """These limits count from now on."""
        for each in self.kinds:
            each.configure(quotas)

    @property
    def are_set(self) -> bool:
        """Whether there is any limit of requests."""
        return any(each.is_set for each in self.kinds)


def _average_ms(meter: Meter[Rate] | Meter[TokenBucket]) -> float:
    return meter.throttled_ms / meter.throttled_count if meter.throttled_count else 0.0
