"""The sender's timer, on virtual time: it is set in seconds to moments that are counted in milliseconds."""

import pytest

from odradek.client.producer.producer import Producer
from tests.client.scripted_broker import scripted_cluster


@pytest.mark.virtual_time(iterations_per_second_max=5_000)
async def test_a_rounding_error_does_not_ring_it_again_and_again() -> None:
    """Many of these moments are less than they were when they have been divided and multiplied by 1000."""
    await send_at_odd_moments()


@pytest.mark.virtual_time(iterations_per_second_max=5_000, whole_ms=True)
async def test_a_whole_millisecond_timer_that_fires_early_is_not_set_again_for_the_rest() -> None:
    """As uvloop's do."""
    await send_at_odd_moments()


async def send_at_odd_moments() -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic("orders")
        async with Producer(cluster.bootstrap, environment=lambda: cluster.environment, linger_ms=7) as producer:
            await cluster.environment.sleep(30_000)  # seconds beyond 1024 are coarser than milliseconds below 2 ** 20
            for number in range(100):
                await cluster.environment.sleep(number / 7)
                await (await producer.send("orders"))
    assert len(cluster.values("orders")) == 100
