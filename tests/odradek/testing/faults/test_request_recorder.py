"""The last requests are kept, and no receive buffer with them."""

from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.testing.faults.fault import match_of
from odradek.testing.faults.request_recorder import KEPT_BYTES_MAX, KEPT_MAX, RequestRecorder
from odradek.testing.waiting import now_s

ALL = match_of()
ID = b"\x01" * 16


def name_by_id(topic_id: bytes) -> str:
    return "orders" if topic_id == ID else ""


def note(recorder: RequestRecorder, group: str, size_bytes: int = 40) -> None:
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id="m")
    recorder.note(1, "Heartbeat", 4, "app", "127.0.0.1:9", request, size_bytes)


def test_they_are_found_by_what_they_are_about_and_when_they_came() -> None:
    recorder = RequestRecorder()
    note(recorder, "g")
    between_s = now_s()
    note(recorder, "h")
    assert [each.request.group_id for each in recorder.requests(ALL, None, name_by_id)] == ["g", "h"]
    assert [each.request.group_id for each in recorder.requests(ALL, between_s, name_by_id)] == ["h"]
    found = recorder.requests(match_of(api="Heartbeat", group="g"), None, name_by_id)
    assert repr(found) == "<1 requests (Heartbeat of group g)>"
    recorder.clear()
    assert not recorder.requests(ALL, None, name_by_id)


def test_the_last_ones_are_kept() -> None:
    recorder = RequestRecorder()
    for number in range(KEPT_MAX + 5):
        note(recorder, str(number))
    requests = recorder.requests(ALL, None, name_by_id)
    assert (len(requests), requests[0].request.group_id) == (KEPT_MAX, "5")


def test_of_large_ones_fewer_are_kept() -> None:
    recorder = RequestRecorder()
    for number in range(5):
        note(recorder, str(number), KEPT_BYTES_MAX // 3)
    assert [each.request.group_id for each in recorder.requests(ALL, None, name_by_id)] == ["2", "3", "4"]


def test_of_records_the_header_of_their_batch_is_kept() -> None:
    recorder, frame = RequestRecorder(), bytearray(range(200))
    data = PartitionProduceData(index=3, records=memoryview(frame))
    request = ProduceRequest(acks=1, timeout_ms=5, topic_data=[TopicProduceData(topic_id=ID, partition_data=[data])])
    recorder.note(1, "Produce", 13, "app", "127.0.0.1:9", request, len(frame))
    [seen] = recorder.requests(match_of(topic="orders"), None, name_by_id)
    assert seen.topics == (("orders", 3),)
    assert seen.request.topic_data[0].partition_data[0].records == bytes(range(HEADER_SIZE))
    del request, data
    frame.extend(b"it can be resized: nobody holds a view of it")
