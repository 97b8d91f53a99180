"""Arguments of a wrong kind are refused by name, and what is read already goes on."""

import re
from collections.abc import Callable
from typing import Any, cast

import pytest

from odradek.client.fetching.fetch_settings import Start
from odradek.client.topic_partition import TopicPartition
from tests.client.reading_handlers import fill
from tests.client.running_fetcher import P0, TOPIC, fetching, reading_cluster

pytestmark = pytest.mark.virtual_time

PARTITIONS = "partition must be TopicPartition(topic, partition) of a str and a whole number, and has "
CASES: list[tuple[Callable[[Any], object], str]] = [
    (lambda fetcher: fetcher.assign("orders", Start.earliest()), PARTITIONS + "'orders' (str)"),
    (lambda fetcher: fetcher.assign(("orders", 0), Start.earliest()), PARTITIONS + "('orders', 0) (tuple)"),
    (
        lambda fetcher: fetcher.assign(TopicPartition(TOPIC, cast(Any, "0")), Start.earliest()),
        PARTITIONS + "TopicPartition(",
    ),
    (lambda fetcher: fetcher.assign(P0, 5), "start must be a Start, as Start.earliest() or Start.at_offset(5), not 5"),
    (
        lambda fetcher: fetcher.assign(P0, Start(cast(Any, "5"))),
        "the offset of start must be a whole number or None, not '5'",
    ),
    (
        lambda fetcher: fetcher.assign(P0, Start(timestamp=cast(Any, 1.5))),
        "the timestamp of start must be a whole number of",
    ),
    (lambda fetcher: fetcher.assign(P0, Start.earliest(), "9"), "end_offset must be a whole number or None, not '9'"),
    (lambda fetcher: fetcher.release("orders"), PARTITIONS + "'orders' (str)"),
    (lambda fetcher: fetcher.position(5), PARTITIONS + "5 (int)"),
]


@pytest.mark.parametrize(("call", "said"), CASES, ids=[str(index) for index in range(len(CASES))])
async def test_an_argument_of_a_wrong_kind_is_named(call: Callable[[Any], object], said: str) -> None:
    async with reading_cluster() as (scripted, _), fetching(scripted) as fetcher:
        fill(scripted, TOPIC, 0, [b"a"])
        fetcher.assign(TopicPartition(TOPIC, 0), Start.earliest())
        with pytest.raises(TypeError, match=re.escape(said)):
            call(fetcher)
        assert await fetcher.next(1_000) is not None


@pytest.mark.parametrize(
    ("timeout_ms", "error"),
    [("5", TypeError), (None, TypeError), (float("nan"), ValueError), (float("inf"), ValueError)],
)
async def test_a_timeout_that_is_no_number_is_refused(timeout_ms: Any, error: type[Exception]) -> None:
    async with reading_cluster() as (scripted, _), fetching(scripted) as fetcher:
        with pytest.raises(error, match=r"timeout_ms must be a .*number of milliseconds, not "):
            await fetcher.next(timeout_ms)
