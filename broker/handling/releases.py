"""A broker that acts as one of an earlier release of Apache Kafka (`act.as`): what it tells clients of itself.

Clients go by what ApiVersions says: each API's versions, and the features, by one of which alone Java's client begins
to speak transaction version 2. Only that changes. Who asks for more than it was told is answered, for brokers among
themselves do so, and each broker of a cluster may act as another release while they are restarted one by one; so what
is for brokers alone (BrokerHeartbeat, WriteTxnMarkers) is told as ever. The lowest versions stay, too: below them
nothing is served.

Ranges: what brokers of these releases answer (kafka-python, broker_version_data.py). Consumer groups of KIP-848 were
off in 3.9, a preview; the first release that had them, and `transaction.version` 2, is 4.0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from odradek.broker.cluster.features import OF_CLIENTS
from odradek.broker.handling.context import Api
from odradek.protocol.codec.schema import Request
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.protocol.messages.update_features import UpdateFeaturesRequest

NOT_THERE: Final = -1
WITHOUT_FEATURES: Final = ("3.9",)

LAST: Final[Mapping[str, Mapping[type[Request[Any]], int]]] = {
    "4.3": {TxnOffsetCommitRequest: 5, ApiVersionsRequest: 4},
    "4.2": {DescribeLogDirsRequest: 4},
    "4.1": {ListOffsetsRequest: 10, OffsetCommitRequest: 9, OffsetFetchRequest: 9},
    "4.0": {
        ProduceRequest: 12,
        FetchRequest: 17,
        AlterPartitionReassignmentsRequest: 0,
        ListTransactionsRequest: 1,
        ListConfigResourcesRequest: 0,
    },
    "3.9": {
        ProduceRequest: 11,
        InitProducerIdRequest: 5,
        ListOffsetsRequest: 9,
        MetadataRequest: 12,
        DescribeGroupsRequest: 5,
        EndTxnRequest: 4,
        TxnOffsetCommitRequest: 4,
        UpdateFeaturesRequest: 1,
        DescribeClusterRequest: 1,
        ConsumerGroupHeartbeatRequest: NOT_THERE,
        ConsumerGroupDescribeRequest: NOT_THERE,
    },
}
"""The last version of what a release has less of than the next one, from the newest release to the oldest."""


def acting_as(served: Mapping[int, Api], release: str | None) -> Mapping[int, Api]:
    """The table with what is told as a release tells it; None: as it is."""
    if release is None:
        return served
    told = dict(served)
    for name, last_versions in LAST.items():
        for request, last in last_versions.items():
            if (api := told.get(request.api_key)) is not None:
                told[api.key] = replace(api, is_advertised=last != NOT_THERE, advertised_until=last)
        if name == release:
            return told
    raise AssertionError(f"the option lets no release {release} through")


def features_of(release: str | None) -> Sequence[str]:
    """The features that clients are told of."""
    return () if release in WITHOUT_FEATURES else OF_CLIENTS
