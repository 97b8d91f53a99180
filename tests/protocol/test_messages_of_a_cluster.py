"""What administers a cluster of brokers, written out by hand from Kafka's definitions.

`golden/` has frames of real clients, but of one broker, where nothing is ever under way: so the lists that a cluster
fills (replicas that come and go, voters, fenced brokers) stand here.
"""

import pytest

from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumListener,
    QuorumNode,
    QuorumPartition,
    QuorumPartitionData,
    QuorumTopic,
    QuorumTopicData,
    ReplicaState,
)
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

DIRECTORY = bytes(range(16))

ELECT = ElectLeadersRequest(
    election_type=1, topic_partitions=[TopicPartitions(topic="t", partitions=[3])], timeout_ms=9
)
ELECTED = ElectLeadersResponse(
    replica_election_results=[
        ReplicaElectionResult(
            topic="t", partition_result=[PartitionResult(partition_id=3, error_code=84, error_message="no")]
        )
    ]
)
REASSIGN = AlterPartitionReassignmentsRequest(
    timeout_ms=9,
    topics=[
        ReassignableTopic(
            name="t",
            partitions=[
                ReassignablePartition(partition_index=0, replicas=[1, 2]),
                ReassignablePartition(partition_index=1, replicas=None),
            ],
        )
    ],
)
REASSIGNABLE = (
    b"\x02\x02t"  # topics: 1; name
    b"\x03"  # partitions: 2
    b"\x00\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x02\x00"  # index 0, replicas 1 and 2
    b"\x00\x00\x00\x01\x00\x00"  # index 1, null: its reassignment is cancelled
    b"\x00\x00"  # no tags of topic and request
)
REASSIGNED = AlterPartitionReassignmentsResponse(
    allow_replication_factor_change=False,
    responses=[
        ReassignableTopicResponse(
            name="t", partitions=[ReassignablePartitionResponse(partition_index=1, error_code=85, error_message="no")]
        )
    ],
)
REASSIGNED_TOPICS = b"\x00\x00\x00\x02\x02t\x02\x00\x00\x00\x01\x00\x55\x03no\x00\x00\x00"
ONGOING = ListPartitionReassignmentsResponse(
    topics=[
        OngoingTopicReassignment(
            name="t",
            partitions=[
                OngoingPartitionReassignment(
                    partition_index=2, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1, 2]
                )
            ],
        )
    ]
)
HEARTBEAT = BrokerHeartbeatRequest(broker_id=2, broker_epoch=7, current_metadata_offset=5, want_shut_down=True)
HEARTBEAT_V0 = (
    b"\x00\x00\x00\x02"  # broker_id
    b"\x00\x00\x00\x00\x00\x00\x00\x07"  # broker_epoch
    b"\x00\x00\x00\x00\x00\x00\x00\x05"  # current_metadata_offset
    b"\x00\x01"  # want_fence, want_shut_down
)
QUORUM_V0 = (
    b"\x00\x00"  # error_code
    b"\x02\x02m\x02"  # topics: 1; name; partitions: 1
    b"\x00\x00\x00\x00\x00\x00"  # partition_index, error_code
    b"\x00\x00\x00\x01\x00\x00\x00\x04"  # leader_id, leader_epoch
    b"\x00\x00\x00\x00\x00\x00\x00\x09"  # high_watermark
    b"\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x0a\x00"  # current_voters: 1; id, log_end_offset
    b"\x01\x00\x00\x00"  # no observers, no tags
)
QUORUM_V2 = (
    b"\x00\x00\x00"  # error_code, error_message null
    b"\x02\x02m\x02"
    b"\x00\x00\x00\x00\x00\x00\x00"
    b"\x00\x00\x00\x01\x00\x00\x00\x04"
    b"\x00\x00\x00\x00\x00\x00\x00\x09"
    b"\x02\x00\x00\x00\x01" + DIRECTORY + b"\x00\x00\x00\x00\x00\x00\x00\x0a"
    b"\x00\x00\x00\x00\x00\x00\x00\x0b"  # last_fetch_timestamp
    b"\x00\x00\x00\x00\x00\x00\x00\x0c\x00"  # last_caught_up_timestamp
    b"\x01\x00\x00"
    b"\x02\x00\x00\x00\x01\x02\x02L\x02h\xff\xfe\x00\x00"  # nodes: 1; listeners: 1 with a port above 32767
    b"\x00"
)


def quorum(state: ReplicaState, nodes: list[QuorumNode]) -> DescribeQuorumResponse:
    partition = QuorumPartition(
        partition_index=0, leader_id=1, leader_epoch=4, high_watermark=9, current_voters=[state], observers=[]
    )
    return DescribeQuorumResponse(topics=[QuorumTopic(topic_name="m", partitions=[partition])], nodes=nodes)


BY_HAND: list[tuple[Message, int, bytes]] = [
    (
        ElectLeadersRequest(topic_partitions=ELECT.topic_partitions, timeout_ms=9),
        0,
        b"\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x09",
    ),
    (ELECT, 1, b"\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x09"),
    (ELECT, 2, b"\x01\x02\x02t\x02\x00\x00\x00\x03\x00\x00\x00\x00\x09\x00"),
    (ElectLeadersRequest(topic_partitions=None), 2, b"\x00\x00\x00\x00\xea\x60\x00"),
    (
        ELECTED,
        0,
        b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x03\x00\x54\x00\x02no",
    ),
    (ELECTED, 2, b"\x00\x00\x00\x00\x00\x00\x02\x02t\x02\x00\x00\x00\x03\x00\x54\x03no\x00\x00\x00"),
    (REASSIGN, 0, b"\x00\x00\x00\x09" + REASSIGNABLE),
    (REASSIGN, 1, b"\x00\x00\x00\x09\x01" + REASSIGNABLE),
    (REASSIGNED, 1, b"\x00\x00\x00\x00\x00" + REASSIGNED_TOPICS),
    (ListPartitionReassignmentsRequest(topics=None), 0, b"\x00\x00\xea\x60\x00\x00"),
    (
        ListPartitionReassignmentsRequest(
            topics=[ListPartitionReassignmentsTopics(name="t", partition_indexes=[2])], timeout_ms=9
        ),
        0,
        b"\x00\x00\x00\x09\x02\x02t\x02\x00\x00\x00\x02\x00\x00",
    ),
    (
        ONGOING,
        0,
        b"\x00\x00\x00\x00\x00\x00\x00\x02\x02t\x02\x00\x00\x00\x02"
        b"\x04\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"  # replicas
        b"\x02\x00\x00\x00\x03"  # adding_replicas
        b"\x03\x00\x00\x00\x01\x00\x00\x00\x02"  # removing_replicas
        b"\x00\x00\x00",
    ),
    (HEARTBEAT, 0, HEARTBEAT_V0 + b"\x00"),
    (HEARTBEAT, 1, HEARTBEAT_V0 + b"\x00"),
    (
        BrokerHeartbeatRequest(
            broker_id=2, broker_epoch=7, current_metadata_offset=5, want_shut_down=True, offline_log_dirs=[DIRECTORY]
        ),
        1,
        HEARTBEAT_V0 + b"\x01\x00\x11\x02" + DIRECTORY,  # one tag: number 0, 17 bytes, one id
    ),
    (
        BrokerHeartbeatRequest(
            broker_id=2, broker_epoch=7, current_metadata_offset=5, want_shut_down=True, cordoned_log_dirs=[]
        ),
        2,
        HEARTBEAT_V0 + b"\x01\x01\x01\x01",  # one tag: number 1, one byte, no ids
    ),
    (
        BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=True),
        1,
        b"\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00",
    ),
    (UnregisterBrokerRequest(broker_id=3), 0, b"\x00\x00\x00\x03\x00"),
    (UnregisterBrokerResponse(error_code=102, error_message="no"), 0, b"\x00\x00\x00\x00\x00\x66\x03no\x00"),
    (
        DescribeQuorumRequest(
            topics=[QuorumTopicData(topic_name="m", partitions=[QuorumPartitionData(partition_index=0)])]
        ),
        2,
        b"\x02\x02m\x02\x00\x00\x00\x00\x00\x00\x00",
    ),
    (quorum(ReplicaState(replica_id=1, log_end_offset=10), []), 0, QUORUM_V0),
    (
        quorum(
            ReplicaState(
                replica_id=1,
                replica_directory_id=DIRECTORY,
                log_end_offset=10,
                last_fetch_timestamp=11,
                last_caught_up_timestamp=12,
            ),
            [QuorumNode(node_id=1, listeners=[QuorumListener(name="L", host="h", port=65534)])],
        ),
        2,
        QUORUM_V2,
    ),
    (
        DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True),
        2,
        b"\x00\x01\x01\x00",
    ),
    (
        DescribeClusterResponse(
            cluster_id="c",
            controller_id=1,
            brokers=[DescribeClusterBroker(broker_id=1, host="h", port=9, rack="r", is_fenced=True)],
        ),
        2,
        b"\x00\x00\x00\x00\x00\x00\x00\x01\x02c\x00\x00\x00\x01"
        b"\x02\x00\x00\x00\x01\x02h\x00\x00\x00\x09\x02r\x01\x00"
        b"\x80\x00\x00\x00\x00",
    ),
]


@pytest.mark.parametrize(
    ("message", "version", "expected"), BY_HAND, ids=[f"{type(case[0]).__name__}-{case[1]}" for case in BY_HAND]
)
def test_messages_written_out_by_hand(message: Message, version: int, expected: bytes) -> None:
    """Encoded to exactly these bytes, and decoded from them."""
    assert encode(message, version).hex(" ") == expected.hex(" ")
    assert decode(type(message), version, expected) == message
