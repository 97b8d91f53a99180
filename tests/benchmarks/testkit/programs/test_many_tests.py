"""Each client gets back what it produced, and the clusters of the tests are not needed for that to be seen."""

from collections.abc import Iterator

import pytest

from benchmarks.testkit.programs.many_tests import ROUND_TRIPS, VALUES
from odradek.testing import Kafka, cluster


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with cluster(1) as kafka:
        yield kafka


@pytest.mark.parametrize("client", ROUND_TRIPS)
def test_a_client_consumes_what_it_produced_in_a_group(kafka: Kafka, client: str) -> None:
    kafka.create_topic(client)
    assert ROUND_TRIPS[client](kafka.bootstrap_servers, client) == VALUES
    assert kafka.group(client).committed() is not None
    assert [record.value for record in kafka.records(client)] == VALUES
