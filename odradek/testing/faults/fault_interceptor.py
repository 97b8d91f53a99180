"""Stands before the handlers of one broker: notes the requests of clients, and does to them what faults in force say.

Of several faults that mean a request the oldest is the outermost: it decides first what becomes of the request, and
last what becomes of the answer. Requests of brokers among themselves, and those of the test kit's own clients, are left
alone, and so are those that another broker has sent on: they were met there. (`brokers_too`, or a `client_id` that
names them, includes them, but for the latter.)

It belongs to a broker over its stops and starts, and runs in the loop of its present life.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from odradek.broker.handling.context import Api, Call, Caller, CloseConnection, Context
from odradek.broker.handling.interceptors import Proceed
from odradek.broker.membership.peers import is_peer
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.testing.faults.corruption import ReplyCorruption, with_corrupt_records
from odradek.testing.faults.fault import Fault, Kind, Where
from odradek.testing.faults.fault_table import Entry, FaultTable, Held, Outcome
from odradek.testing.faults.partial_failures import changed, failed, mark_metadata, merged, split
from odradek.testing.faults.recorded_requests import RecordedRequest
from odradek.testing.faults.request_fields import topics_in
from odradek.testing.faults.request_match import matches, matches_client, means
from odradek.testing.faults.request_recorder import RequestRecorder
from odradek.testing.faults.stalled_followers import StalledFollowers
from odradek.testing.own_client import CLIENT_ID
from odradek.testing.waiting import now_s

__all__ = ["FaultInterceptor"]


class FaultInterceptor:
    """See the module."""

    def __init__(
        self, node_id: int, table: FaultTable, recorder: RequestRecorder, context: Callable[[], Context]
    ) -> None:
        """`context`: of the broker's present life; asked for while a request is handled."""
        self._node_id = node_id
        self._table = table
        self._recorder = recorder
        self._context = context
        self._stalls = StalledFollowers(table, context)
        self._muted_until_ms: dict[Caller, float] = {}
        """Connections that are throttled (KIP-219)."""
        self.replies: Final = ReplyCorruption()
        """Has to be among the interceptors of connections while a fault corrupts replies."""

    async def intercept(self, call: Call, api: Api, request: Any, proceed: Proceed) -> Any:
        client_id = call.client_id
        if call.is_forwarded:
            return await proceed(request)
        if is_broker := is_peer(client_id):
            if type(request) is FetchRequest:
                proceed = partial(self._stalls.answer, proceed)
        elif client_id != CLIENT_ID:
            peer, size_bytes = call.caller.peer, call.times.size_bytes
            self._recorder.note(self._node_id, api.name, call.version, client_id, peer, request, size_bytes)
        if self._muted_until_ms:
            await self._wait_until_unmuted(call)
        entries = self._table.entries
        if not entries:
            return await proceed(request)
        meant = [each for each in entries if self._may_mean(each.fault, api, client_id, is_broker)]
        if type(request) is FetchRequest and not is_broker and any(each.fault.match.topic for each in meant):
            request = self._naming_all(request)
        return await self._through(meant, call, api, proceed, request)

    def _may_mean(self, fault: Fault, api: Api, client_id: str | None, is_broker: bool) -> bool:
        """Whether it depends on what the request says."""
        match = fault.match
        if match.api is not None and match.api != api.name:
            return False
        if match.broker is not None and match.broker != self._node_id:
            return False
        if fault.kind is Kind.STALL_FOLLOWER or not matches_client(match, client_id):
            return False
        if is_broker or client_id == CLIENT_ID:
            return match.client_id == client_id or (is_broker and match.brokers_too)
        return True

    def _naming_all(self, request: FetchRequest) -> FetchRequest:
        """A Fetch of a session names what has changed since the last one. While a fault is about a topic there are no
        sessions, so that each names all its partitions, as with a broker that has no room for them (KIP-227). Raises
        KafkaError FETCH_SESSION_ID_NOT_FOUND, upon which the client names all."""
        if request.session_epoch > 0:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "a fault of the test ends fetch sessions")
        return request if request.session_epoch < 0 else changed(request, session_epoch=-1)

    async def _through(self, entries: Sequence[Entry], call: Call, api: Api, proceed: Proceed, request: Any) -> Any:
        for place, entry in enumerate(entries):
            if self._is_meant(entry, api, call, request):
                go_on = partial(self._through, entries[place + 1 :], call, api, proceed)
                return await self._apply(entry, call, api, request, go_on)
        return await proceed(request)

    def _is_meant(self, entry: Entry, api: Api, call: Call, request: Any) -> bool:
        if entry.is_undone:
            return False
        match = entry.fault.match
        return matches(match, self._node_id, api.name, call.client_id, request, self._name_by_id)

    def _name_by_id(self, topic_id: bytes) -> str:
        return self._context().metadata.image.name_by_id(topic_id)

    # -- what becomes of a request ----------------------------------------------------------------------------------

    async def _apply(self, entry: Entry, call: Call, api: Api, request: Any, proceed: Proceed) -> Any:
        """Raises CloseConnection, KafkaError."""
        fault = entry.fault
        if fault.kind is Kind.CORRUPT and fault.corrupts_records:
            return await self._corrupt(entry, call, request, proceed)
        if fault.kind is Kind.FAIL and type(request) is MetadataRequest and fault.match.topic is not None:
            return await self._fail_metadata(entry, call, request, proceed)
        if fault.kind is Kind.CORRUPT:
            return await self._corrupt_reply(entry, call, request, proceed)
        if not self._table.take(entry):
            return await proceed(request)
        match fault.kind:
            case Kind.FAIL:
                return await self._fail(fault, call, api, request, proceed)
            case Kind.THROTTLE:
                return await self._throttle(fault, call, request, proceed)
            case Kind.INTERCEPT:
                return await self._intercept(entry, call, api, request, proceed)
            case _:
                return await self._interrupt(entry, call, request, proceed)

    async def _interrupt(self, entry: Entry, call: Call, request: Any, proceed: Proceed) -> Any:
        """Those that change neither request nor answer. Raises CloseConnection."""
        fault = entry.fault
        is_answer = fault.where is Where.ANSWER
        answer = await proceed(request) if is_answer else None
        match fault.kind:
            case Kind.DISCONNECT:
                raise CloseConnection(f"a fault of the test: {fault}")
            case Kind.DROP:
                return None
            case Kind.DELAY:
                await self._wait(entry, call, fault.delay_ms, keeps_turn=not is_answer)
            case _:
                assert fault.kind in (Kind.HOLD, Kind.HALF_OPEN), fault.kind
                await self._wait(entry, call, None, keeps_turn=not is_answer)
        return answer if is_answer else await proceed(request)

    async def _wait(self, entry: Entry, call: Call, timeout_ms: float | None, *, keeps_turn: bool) -> None:
        """Until the time is up, the test lets it go, or the broker stops. Raises CloseConnection."""
        context = self._context()
        held = Held(context.environment.loop)
        if not self._table.hold(entry, held):
            return
        caller = call.caller
        caller.keeps_turn = keeps_turn or caller.keeps_turn  # the next request of the connection is not to overtake it
        try:
            with context.interruptible(held.interrupt), context.waiting(call):
                outcome = await held.wait(timeout_ms)
        finally:
            caller.keeps_turn = caller.keeps_turn and not keeps_turn
            self._table.forget(entry, held)
        if outcome is Outcome.CLOSE:
            raise CloseConnection(f"a fault of the test has held a request to its end: {entry.fault}")

    async def _fail(self, fault: Fault, call: Call, api: Api, request: Any, proceed: Proceed) -> Any:
        """Raises KafkaError, CloseConnection."""
        assert fault.error is not None
        error = KafkaError(fault.error, f"a fault of the test: {fault}")
        if fault.match.topic is None:
            raise error
        kept, failing = split(request, partial(means, fault.match), self._name_by_id)
        if failing is None:
            return await proceed(request)
        answer = None
        if kept is not None:
            if type(kept) is FetchRequest:
                kept = changed(kept, min_bytes=0, max_wait_ms=0)  # an error is told at once
            answer = await proceed(kept)
        answer_of_failing = failed(api, failing, call.failed(error))
        if answer_of_failing is None:
            raise error
        return merged(answer, answer_of_failing)

    async def _fail_metadata(self, entry: Entry, call: Call, request: Any, proceed: Proceed) -> Any:
        fault, answer = entry.fault, await proceed(request)
        assert fault.error is not None
        is_whole = fault.match.partition is None
        marked = mark_metadata(answer, partial(means, fault.match), fault.error, whole_topic=is_whole)
        if marked is answer or not self._table.take(entry):
            return answer
        call.failed(KafkaError(fault.error))
        return marked

    async def _corrupt(self, entry: Entry, call: Call, request: Any, proceed: Proceed) -> Any:
        call.caller.takes_slices = False  # of files: records have to be in memory to be changed
        answer = await proceed(request)
        match = entry.fault.match
        is_hit = None if match.topic is None else partial(means, match)
        corrupt = with_corrupt_records(answer, is_hit, self._name_by_id)
        return answer if corrupt is None or not self._table.take(entry) else corrupt

    async def _corrupt_reply(self, entry: Entry, call: Call, request: Any, proceed: Proceed) -> Any:
        self.replies.corrupt(call)  # first, for replies are looked at while there is such a fault, or such a reply
        if not self._table.take(entry):
            self.replies.spare(call)
        return await proceed(request)

    async def _throttle(self, fault: Fault, call: Call, request: Any, proceed: Proceed) -> Any:
        answer = await proceed(request)
        now_ms = self._context().environment.monotonic_ms()
        self._muted_until_ms = {each: until_ms for each, until_ms in self._muted_until_ms.items() if until_ms > now_ms}
        self._muted_until_ms[call.caller] = now_ms + fault.delay_ms
        if answer is None or "throttle_time_ms" not in answer.fields:
            return answer
        return changed(answer, throttle_time_ms=max(answer.throttle_time_ms, round(fault.delay_ms)))

    async def _wait_until_unmuted(self, call: Call) -> None:
        environment = self._context().environment
        left_ms = self._muted_until_ms.get(call.caller, 0.0) - environment.monotonic_ms()
        if left_ms > 0:
            call.caller.keeps_turn = True
            try:
                await environment.sleep(left_ms)
            finally:
                call.caller.keeps_turn = False

    async def _intercept(self, entry: Entry, call: Call, api: Api, request: Any, proceed: Proceed) -> Any:
        assert entry.function is not None
        topics = tuple(topics_in(request, self._name_by_id))
        peer = call.caller.peer
        seen = RecordedRequest(now_s(), self._node_id, api.name, call.version, call.client_id, peer, request, topics)
        return await entry.function(seen, proceed)
