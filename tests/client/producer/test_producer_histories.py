"""Histories of misfortune, drawn by Hypothesis: faults on requests, brokers that go and return, leaders that move, slow
and torn connections, clocks that jump, in any combination and with any settings, while records are sent in all the ways
there are, with much memory or little, and perhaps until another task closes. What must hold is in `story.py`."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, NamedTuple, cast
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.errors.client_errors import ClientError, RecordTooLarge
from odradek.client.producer.sending import compression
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.testing.sim.world.memory_pipe import Direction, byte_by_byte, torn_randomly
from tests.client.broker_faults import (
    Ending,
    Fault,
    cut_body,
    disconnect_after,
    disconnect_before,
    error,
    garbage,
    late,
    length,
    never,
    skipped,
    slow,
    throttled,
    torn,
    twice,
    wrong_correlation_id,
)
from tests.client.broker_log import MAX_MESSAGE_BYTES
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.story import TOPIC, Manner, Story, tell
from tests.client.virtual_time import VirtualTimeLoop, run_virtual

HISTORIES = int(os.environ.get("PRODUCER_HISTORIES", "50"))
ALL = (0, 1, 2)
LIES_ABOUT_THE_LOG = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
)
"""Where they are not true, no client can help it (`test_producer_errors.py`)."""
CODES = [code for code in ErrorCode if code is not ErrorCode.NONE and code not in LIES_ABOUT_THE_LOG]
RETRIABLE = [code for code in CODES if code.retriable]
DELAYS_MS = (50.0, 500.0, 1_500.0, 2_500.0, 9_000.0)
ENDS = st.sampled_from([Ending.CLOSE, Ending.RESET])


class Misfortune(NamedTuple):
    """Faults for some requests."""

    request_type: type[Request[Any]]
    fault: Fault
    nth: int
    times: int


class Event(NamedTuple):
    """Something that happens so long after the one before it, to this node or partition."""

    after_s: float
    happen: Callable[[ScriptedCluster, int, int], None]
    where: int
    to: int
    records: int
    """So many are sent to each partition afterwards."""
    manner: Manner


class Circumstances(NamedTuple):
    """Of one broker, and the way there."""

    delay_ms: float
    jitter_ms: float
    tears: bool
    answers_byte_by_byte: bool
    service_ms: float
    produce_version: int

    def apply(self, cluster: ScriptedCluster, node: int) -> None:
        broker = cluster.brokers[node]
        tear = torn_randomly(cluster.network.rng.randint) if self.tears else None
        broker.path.to_server = Direction(self.delay_ms, self.jitter_ms, tear=tear)
        tear = byte_by_byte if self.answers_byte_by_byte else tear
        broker.path.to_client = Direction(self.delay_ms, self.jitter_ms, tear=tear)
        broker.service_ms = self.service_ms
        broker.versions[ProduceRequest] = (3, self.produce_version)


def errors(request_type: type[Request[Any]]) -> st.SearchStrategy[Fault]:
    if request_type is ProduceRequest:
        codes = st.sampled_from(RETRIABLE) | st.sampled_from(CODES)
        partitions = st.sampled_from([None, *ALL])
        return st.builds(error, codes, st.just(TOPIC), partitions, appended=st.booleans())
    if request_type is MetadataRequest:
        return st.builds(error, st.sampled_from(RETRIABLE), st.just(TOPIC), st.sampled_from([None, *ALL]))
    return st.builds(error, st.sampled_from(RETRIABLE))


def faults(request_type: type[Request[Any]]) -> st.SearchStrategy[Fault]:
    delays = st.sampled_from(DELAYS_MS)
    return st.one_of(
        st.builds(late, delays),
        st.builds(slow, delays),
        st.builds(never, applies=st.booleans()),
        st.builds(skipped),
        st.builds(twice),
        st.builds(wrong_correlation_id, st.sampled_from([1, -1])),
        st.builds(torn, st.integers(0, 40), st.sampled_from(Ending)),
        st.builds(cut_body, st.integers(1, 20)),
        st.builds(length, st.sampled_from([-1, -(1 << 31), (1 << 31) - 1])),
        st.builds(garbage, st.binary(min_size=1, max_size=60)),
        st.builds(disconnect_before, ENDS),
        st.builds(disconnect_after, ENDS),
        st.builds(throttled, st.sampled_from([10, 300, 3_000])),
        errors(request_type),
    )


@st.composite
def misfortunes(draw: st.DrawFn) -> Misfortune:
    request_type: type[Request[Any]] = draw(
        st.sampled_from([ProduceRequest, ProduceRequest, MetadataRequest, InitProducerIdRequest, ApiVersionsRequest])
    )
    first = 1 if request_type in (ProduceRequest, InitProducerIdRequest) else 2  # the start shall succeed
    nth = draw(st.integers(first, first + 6))
    return Misfortune(request_type, draw(faults(request_type)), nth, draw(st.sampled_from([1, 1, 2, 4])))


# ------------------------------------------------------------------------------------------------------------- events
def move_leader(cluster: ScriptedCluster, where: int, to: int) -> None:
    cluster.move_leader(TOPIC, where, to=to)


def lose_leader(cluster: ScriptedCluster, where: int, to: int) -> None:
    cluster.move_leader(TOPIC, where, to=-1)


def stop_or_start(cluster: ScriptedCluster, where: int, to: int) -> None:
    broker = cluster.brokers[where]
    if broker.is_running:
        broker.stop(vanish=to == 1, fenced=to == 2)
    else:
        broker.start()


def close_connections(cluster: ScriptedCluster, where: int, to: int) -> None:
    cluster.brokers[where].close_connections()


def hear_nothing(cluster: ScriptedCluster, where: int, to: int) -> None:
    cluster.brokers[where].freeze_metadata()


def hear_again(cluster: ScriptedCluster, where: int, to: int) -> None:
    cluster.brokers[where].stale_metadata = None


def jump(cluster: ScriptedCluster, where: int, to: int) -> None:
    cluster.environment.jump_ms((to - 1) * 86_400_000)


def cancel_what_is_found(cluster: ScriptedCluster, where: int, to: int) -> None:
    """All that `asyncio.all_tasks()` lists but the story's own, as the end of `asyncio.run` does."""
    for task in asyncio.all_tasks():
        code = cast(Any, task.get_coro()).cr_code
        if "/tests/" not in code.co_filename:
            task.cancel()


def nothing(cluster: ScriptedCluster, where: int, to: int) -> None: ...


def repair(cluster: ScriptedCluster) -> None:
    """In the end, all is well again."""
    for broker in cluster.brokers.values():
        broker.stale_metadata = None
        if not broker.is_running:
            broker.start()
    for index, partition in enumerate(cluster.topics[TOPIC].partitions):
        if partition.leader < 0:
            cluster.move_leader(TOPIC, index, to=index)


MANNERS = st.builds(
    Manner,
    st.sampled_from(["send", "send_nowait", "send_batch"]),
    st.sampled_from(["partition", "key", "nothing"]),
    st.booleans(),
    st.sampled_from([0, 0, 1, 2, 3, 20]),
)
EVENTS = st.builds(
    Event,
    st.sampled_from([0.0, 0.003, 0.1, 0.7, 3.0]),
    st.sampled_from(
        [
            move_leader,
            move_leader,
            stop_or_start,
            stop_or_start,
            lose_leader,
            close_connections,
            hear_nothing,
            hear_again,
            jump,
            cancel_what_is_found,
            nothing,
        ]
    ),
    st.sampled_from(ALL),
    st.sampled_from(ALL),
    st.sampled_from([0, 0, 1, 6]),
    MANNERS,
)
CIRCUMSTANCES = st.builds(
    Circumstances,
    st.sampled_from([0.1, 1.0, 20.0]),
    st.sampled_from([0.0, 5.0]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 1.0, 50.0]),
    st.integers(7, 11),
)
SETTINGS = st.fixed_dictionaries(
    {
        "max_in_flight_requests_per_connection": st.sampled_from([5, 1, 2]),
        "linger_ms": st.sampled_from([0, 5]),
        "batch_size": st.sampled_from([150, 0, 100, 400, 3_000]),
        "compression_type": st.sampled_from(["none", "zstd", "gzip"]),
        "buffer_memory": st.sampled_from([33_554_432, 5_000]),
        "close_timeout_ms": st.sampled_from([25_000, 0, 300]),
    }
)


def history(
    misfortunes: list[Misfortune],
    events: list[Event],
    circumstances: list[Circumstances],
    loop: VirtualTimeLoop,
    *,
    compressed_in_loop_bytes: int,
    max_message_bytes: int = MAX_MESSAGE_BYTES,
    gives_hints: bool = False,
    **told: Any,
) -> Story:
    """What becomes of a producer then. `told`: what `tell` takes."""

    async def happen(story: Story) -> None:
        for event in events:
            await asyncio.sleep(event.after_s)
            event.happen(story.cluster, event.where, event.to)
            await story.send(event.records, ALL, event.manner)
        await asyncio.sleep(1)
        repair(story.cluster)

    async def main() -> Story:
        with scripted_cluster(brokers=3, sends_late=loop.whole_ms) as cluster:
            cluster.create_topic(TOPIC, partitions=3, max_message_bytes=max_message_bytes)
            cluster.gives_hints = gives_hints
            for node, each in enumerate(circumstances):
                each.apply(cluster, node)
            for misfortune in misfortunes:
                cluster.on(misfortune.request_type, misfortune.fault, nth=misfortune.nth, times=misfortune.times)
            return await tell(cluster, meanwhile=happen, **told)

    with patch.object(compression, "COMPRESSED_IN_LOOP_BYTES_MAX", compressed_in_loop_bytes):
        return run_virtual(main(), loop)


@settings(max_examples=HISTORIES)
@given(
    misfortunes=st.lists(misfortunes(), max_size=6),
    events=st.lists(EVENTS, max_size=6),
    circumstances=st.lists(CIRCUMSTANCES, min_size=3, max_size=3),
    producer_settings=SETTINGS,
    records=st.sampled_from([20, 1, 5]),
    senders=st.lists(MANNERS, min_size=1, max_size=2),
    is_audited=st.booleans(),
    max_message_bytes=st.sampled_from([MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES, 100]),
    closes_after_s=st.sampled_from([None, None, 0.0, 0.001, 0.02, 0.5, 4.0]),
    gives_hints=st.booleans(),
    blocking_ms=st.sampled_from([0.0, 3.0, 40.0]),
    as_uvloop=st.booleans(),
    compressed_in_loop_bytes=st.sampled_from([compression.COMPRESSED_IN_LOOP_BYTES_MAX, 100]),
)
def test_whatever_happens_the_promises_are_kept(
    misfortunes: list[Misfortune],
    events: list[Event],
    circumstances: list[Circumstances],
    producer_settings: dict[str, Any],
    records: int,
    senders: list[Manner],
    is_audited: bool,
    max_message_bytes: int,
    closes_after_s: float | None,
    gives_hints: bool,
    blocking_ms: float,
    as_uvloop: bool,
    compressed_in_loop_bytes: int,
) -> None:
    story = history(
        misfortunes,
        events,
        circumstances,
        VirtualTimeLoop(blocking_ms=blocking_ms, whole_ms=as_uvloop),
        compressed_in_loop_bytes=compressed_in_loop_bytes,
        max_message_bytes=max_message_bytes,
        gives_hints=gives_hints,
        records=records,
        senders=senders,
        is_audited=is_audited,
        closes_after_s=closes_after_s,
        **producer_settings,
    )
    assert all(isinstance(why, ClientError) for why in story.errors)
    if not misfortunes and not events and closes_after_s is None:
        assert all(isinstance(why, RecordTooLarge) for why in story.errors)
        assert story.errors == [] or max_message_bytes < MAX_MESSAGE_BYTES


HARMLESS = [cancel_what_is_found, cancel_what_is_found, move_leader, close_connections]


@settings(max_examples=max(1, HISTORIES // 4))
@given(
    events=st.lists(
        st.builds(
            Event,
            st.sampled_from([0.0, 0.003, 0.1]),
            st.sampled_from(HARMLESS),
            st.sampled_from(ALL),
            st.sampled_from(ALL),
            st.sampled_from([1, 6]),
            MANNERS,
        ),
        min_size=1,
        max_size=6,
    ),
    circumstances=st.lists(CIRCUMSTANCES, min_size=3, max_size=3),
    producer_settings=SETTINGS,
    blocking_ms=st.sampled_from([0.0, 3.0, 40.0]),
    compressed_in_loop_bytes=st.sampled_from([compression.COMPRESSED_IN_LOOP_BYTES_MAX, 100]),
)
def test_what_harms_nobody_leaves_nothing_undelivered(
    events: list[Event],
    circumstances: list[Circumstances],
    producer_settings: dict[str, Any],
    blocking_ms: float,
    compressed_in_loop_bytes: int,
) -> None:
    """Whoever cancels all tasks does no harm, at whatever moment."""
    loop = VirtualTimeLoop(blocking_ms=blocking_ms)
    story = history(
        [],
        events,
        circumstances,
        loop,
        compressed_in_loop_bytes=compressed_in_loop_bytes,
        records=5,
        **producer_settings,
    )
    assert story.errors == []
