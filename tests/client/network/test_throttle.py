"""Which answers silence a connection: by API and version as in Java's classes, and never beyond the bound."""

import pytest

from odradek.client.network.throttle import THROTTLE_MS_MAX, silence_ms
from odradek.protocol.codec.schema import Response
from odradek.protocol.declared import declared_messages

# The first version of each response of ours whose Java class says `shouldClientThrottle`. DescribeCluster says so in no
# version, and OffsetForLeaderEpoch neither: Java overlooks both, whose brokers throttle as they do for all others.
SINCE = {
    "Produce": 6,
    "Fetch": 8,
    "ListOffsets": 3,
    "Metadata": 6,
    "FindCoordinator": 2,
    "ApiVersions": 2,
    "CreateTopics": 3,
    "DeleteTopics": 2,
    "DeleteRecords": 1,
    "InitProducerId": 1,
    "AddPartitionsToTxn": 1,
    "AddOffsetsToTxn": 1,
    "EndTxn": 1,
    "TxnOffsetCommit": 1,
    "DescribeConfigs": 2,
    "AlterConfigs": 1,
    "DescribeLogDirs": 1,
    "CreatePartitions": 1,
    "IncrementalAlterConfigs": 0,
    "DescribeTopicPartitions": 0,
}


@pytest.mark.parametrize("api", SINCE)
def test_each_api_silences_from_its_version_on(api: str) -> None:
    response = declared_messages()[f"{api}Response"]
    assert issubclass(response, Response)
    for version in range(response.max_version + 1):
        assert silence_ms(response.api_key, version, 30) == (30 if version >= SINCE[api] else 0)


def test_apis_that_came_later_silence_in_all_versions() -> None:
    assert silence_ms(60, 0, 30) == 30
    assert silence_ms(1000, 0, 30) == 30


def test_no_answer_silences_for_ever_or_backwards() -> None:
    assert silence_ms(3, 12, 2**31 - 1) == THROTTLE_MS_MAX
    assert silence_ms(3, 12, 0) == 0
    assert silence_ms(3, 12, -1) == 0
