"""WriteTxnMarkers (key 27): the coordinator has the leaders of a transaction's partitions write how it ended.

An operator sends it, too, to end a transaction that hangs (Admin.abortTransaction, KIP-664).

v1: flexible (KIP-482)
v2: transaction_version (KIP-1228)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, i64, message, struct


@struct
class WritableTxnMarkerPartitionResult(Struct):
    partition_index: i32
    error_code: i16 = 0


@struct
class WritableTxnMarkerTopicResult(Struct):
    name: str
    partitions: list[WritableTxnMarkerPartitionResult]


@struct
class WritableTxnMarkerResult(Struct):
    producer_id: i64
    topics: list[WritableTxnMarkerTopicResult]


@message(key=27, versions=(1, 2), flexible=1)
class WriteTxnMarkersResponse(Response):
    markers: list[WritableTxnMarkerResult]


@struct
class WritableTxnMarkerTopic(Struct):
    name: str
    partition_indexes: list[i32]


@struct
class WritableTxnMarker(Struct):
    producer_id: i64
    producer_epoch: i16
    transaction_result: bool
    """True: committed; False: aborted."""
    topics: list[WritableTxnMarkerTopic]
    coordinator_epoch: i32
    transaction_version: i8 = field(since=2, default=0)


@message(key=27, versions=(1, 2), flexible=1)
class WriteTxnMarkersRequest(Request[WriteTxnMarkersResponse]):
    markers: list[WritableTxnMarker]
