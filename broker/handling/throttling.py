"""What a request is charged to the quotas of its client, and how the client is told to be silent (KIP-13, KIP-124,
KIP-219, KIP-599).

| what | is charged | by |
|---|---|---|
| bytes of a Produce | when it begins, so that those wait that may begin before its answer | api/produce.py |
| bytes of a Fetch | when its answer is there; one that is too much is not sent, nor charged | api/fetch/consumer.py |
| partitions created and deleted | before that is done | the handlers of topics |
| time of the loop's thread | when the answer is there, and what encoding it took afterwards | handling/dispatch.py |

The answer says for how long, in whatever version has a field for that, and goes out at once; the connection is muted
until then, whether the client heeds it or not.

**Who is not charged**: brokers, for what they may do by ClusterAction on the listener that is theirs. Who merely calls
himself like one is.

**New connections.** A client that is to be silent could go on by another connection, which nobody has muted, each
request by a new one. So the first request of a connection waits as long as its client is to be silent on others, for
a Produce FIRST_WAIT_MS_MAX at most: an honest one has to get an answer before it gives up. Kafka lets it through.
"""

import asyncio
from copy import copy
from math import inf
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.access.principal import ANONYMOUS
from odradek.broker.membership.peers import is_peer
from odradek.broker.observability.request_times import FETCH_FOLLOWER, MS_PER_S
from odradek.broker.quotas.client_quotas import PERCENT, Client, ClientQuotas, RateQuota
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from odradek.broker.handling.context import Api, Call, Context

FIRST_WAIT_MS_MAX: Final = 10_000.0
OF_BROKERS: Final = frozenset({FETCH_FOLLOWER, "WriteTxnMarkers", "BrokerHeartbeat", "Envelope"})
"""Requests that only ClusterAction permits, or that only brokers have a reason to send."""
ADD_PARTITIONS: Final = "AddPartitionsToTxn"
ADD_PARTITIONS_OF_BROKERS_SINCE: Final = 4
GREETED: Final = "ApiVersions"
"""Among what a connection was charged with: the first request of this kind has come."""
EXEMPT_S: Final = inf
"""In place of the time of a request that was counted: none of it counts."""


class Throttling:
    """Of one broker."""

    __slots__ = ("_context", "quotas")

    def __init__(self, context: "Context", quotas: ClientQuotas) -> None:
        self._context = context
        self.quotas = quotas

    # -- before a request -------------------------------------------------------------------------------------------

    async def begins(self, api: "Api", call: "Call", request: Any) -> None:
        """Called before it is handled. Waits, where the client is to be silent, and this is the first request of its
        connection that is charged."""
        kinds = [self.quotas.request, self.quotas.producer] if api.has_records else [self.quotas.request]
        new = [each for each in kinds if each.is_set and each.kind.value not in call.caller.charged]
        if not new or call.is_forwarded or not self._is_known(call) or self._may_be_brokers(api, call, request):
            return
        client, now_ms = _client(call), self._now_ms()
        wait_ms = min(max(each.silent_until_ms(client) for each in new) - now_ms, FIRST_WAIT_MS_MAX)
        if wait_ms > 0:
            call.caller.mute(now_ms + wait_ms)  # what is behind it is not read meanwhile
            call.caller.keeps_turn = True
            try:
                with self._context.waiting(call):
                    await self._rest(wait_ms)
            finally:
                call.caller.keeps_turn = False

    def _may_be_brokers(self, api: "Api", call: "Call", request: Any) -> bool:
        """Whether it is a broker's, as far as it says so itself: who merely says so is charged afterwards.

        What a broker greets another one with, the first ApiVersions of its connection, is exempt for good: a limit of
        everybody's would delay heartbeats. So whoever greets like a broker has that one request free."""
        if api.name in OF_BROKERS:
            return True
        if isinstance(request, FetchRequest):
            return request.replica_id >= 0 or (
                request.replica_state is not None and request.replica_state.replica_id >= 0
            )
        caller = call.caller
        if isinstance(request, ApiVersionsRequest) and GREETED not in caller.charged:
            caller.charged |= {GREETED}
            if caller.listener == self._context.member.peers.listener and is_peer(call.client_id):
                call.times.counted_s = EXEMPT_S
                return True
        return False

    async def _rest(self, wait_ms: float) -> None:
        """Returns when the time is up, or the broker stops."""
        over = asyncio.Event()
        timer = self._context.environment.loop.call_later(wait_ms / MS_PER_S, over.set)
        try:
            with self._context.interruptible(over.set):
                if not self._context.stopping:
                    await over.wait()
        finally:
            timer.cancel()

    # -- by its handler ---------------------------------------------------------------------------------------------

    def produced(self, call: "Call") -> None:
        """A Produce begins. Its connection is muted at once, where it has to be."""
        if self.quotas.producer.is_set:
            silence_ms = self._charge(self.quotas.producer, call, call.times.size_bytes)
            if silence_ms > 0:
                self._silence(call, silence_ms)
                call.caller.mute(call.times.throttled_until_ms)

    def fetch_bytes_max(self, call: "Call") -> int:
        """The most that may be answered: more would silence any client, and none would ever get it."""
        return self.quotas.consumer.at_once(_client(call))

    def must_withhold(self, call: "Call", size_bytes: int) -> bool:
        """Charges a Fetch with its time so far and an answer of this size. Whether its client is to be silent, and the
        answer must not be sent: then its size does not count.

        A batch that is larger than what a client may get at once is sent to one that has got nothing for so long that
        this is all it is charged for, and is silent afterwards; in Kafka it is never sent.
        """
        quota, client, now_ms = self.quotas.consumer, _client(call), self._now_ms()
        is_only_way = quota.is_set and size_bytes > quota.at_once(client) and quota.is_unused(client, now_ms)
        silence_ms = self._charge_time(call)
        if quota.is_set:
            silence_ms = max(silence_ms, self._charge(quota, call, size_bytes))
        if silence_ms <= 0:
            return False
        self._silence(call, silence_ms)
        if is_only_way:
            return False
        if quota.is_set:
            quota.note(client, -size_bytes, now_ms)
        return True

    def mutates(self, call: "Call", partitions: int, *, strict_since: int) -> None:
        """So many partitions are about to be created or deleted. Since that version of the request it is refused where
        the client owes some, and before, done, and the client silenced. Raises KafkaError THROTTLING_QUOTA_EXCEEDED."""
        if not self.quotas.mutation.is_set:
            return
        is_strict = call.version >= strict_since
        silence_ms = self.quotas.mutation.charge(_client(call), partitions, self._now_ms(), is_strict=is_strict)
        if silence_ms > 0:
            self._silence(call, silence_ms)
            if is_strict:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def may_create(self, call: "Call", partitions: int) -> None:
        """So many partitions are about to be created by a request that asks about a topic. It is refused, as
        `mutates`, and its client not silenced: it asks again by itself. Raises KafkaError THROTTLING_QUOTA_EXCEEDED."""
        if self.quotas.mutation.charge(_client(call), partitions, self._now_ms(), is_strict=True) > 0:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    # -- its answer -------------------------------------------------------------------------------------------------

    def answered(self, call: "Call", answer: Any) -> Any:
        """Charges the time up to now. The answer as it is to be sent, with the time for which the client is to be
        silent; another broker that was asked for it may have put one in."""
        times, now_ms = call.times, self._now_ms()
        if (silence_ms := self._charge_time(call)) > 0:
            self._silence(call, silence_ms)
        has_field = answer is not None and "throttle_time_ms" in answer.fields
        if has_field and answer.throttle_time_ms > 0:
            self._silence(call, answer.throttle_time_ms)
        left_ms = round(times.throttled_until_ms - now_ms)
        if left_ms <= 0:
            return answer
        times.throttle_s = left_ms / MS_PER_S
        if not call.is_forwarded:
            call.caller.mute(times.throttled_until_ms)
        if has_field:
            answer = copy(answer)
            answer.throttle_time_ms = left_ms
        return answer

    def completed(self, call: "Call") -> None:
        """Counts the time since `answered`; the next request is charged for it."""
        quota = self.quotas.request
        if quota.is_set and (amount := self._time(call)) > 0:
            quota.note(_client(call), amount, self._now_ms())

    # -- what they share --------------------------------------------------------------------------------------------

    def _charge(self, quota: RateQuota, call: "Call", amount: float) -> int:
        """For how long its client is to be silent, in ms."""
        if not self._is_known(call):
            return 0
        caller = call.caller
        if quota.kind.value not in caller.charged:
            caller.charged |= {quota.kind.value}
        return quota.charge(_client(call), amount, self._now_ms())

    def _charge_time(self, call: "Call") -> int:
        quota = self.quotas.request
        return self._charge(quota, call, self._time(call)) if quota.is_set and not self._is_brokers(call) else 0

    def _time(self, call: "Call") -> float:
        """The time of the loop's thread that has not been counted yet, in percent of a second."""
        if self._is_brokers(call) or not self._is_known(call):
            return 0.0
        times = call.times
        spent_s = max(0.0, times.worked_s(self._context.environment.precise_s()) - times.counted_s)
        times.counted_s += spent_s
        return spent_s * PERCENT

    def _silence(self, call: "Call", silence_ms: int) -> None:
        call.times.throttled_until_ms = max(call.times.throttled_until_ms, self._now_ms() + silence_ms)

    def _is_brokers(self, call: "Call") -> bool:
        """Whether it is exempt: a broker's, who was permitted ClusterAction for it, or its greeting."""
        times = call.times
        if times.counted_s == EXEMPT_S:
            return True
        is_of_brokers = times.name in OF_BROKERS or (
            times.name == ADD_PARTITIONS and call.version >= ADD_PARTITIONS_OF_BROKERS_SINCE
        )
        if not is_of_brokers or call.caller.listener != self._context.member.peers.listener:
            return False
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED not in (call.errors or ())

    def _is_known(self, call: "Call") -> bool:
        """Whether it is known who asks: nothing counts as ANONYMOUS's that comes before authentication."""
        return call.principal != ANONYMOUS or not call.caller.protocol.needs_authentication

    def _now_ms(self) -> int:
        return int(self._context.environment.monotonic_ms())


def _client(call: "Call") -> Client:
    return Client(call.principal.name, call.client_id or "")
