"""Frames of requests against the general way of making them, and responses out of frames: right, wrong, left over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.network.exchange import Framer, Sent, response_in
from odradek.protocol.codec.codec import encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import RequestHeader, request_frame, response_frame
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataResponse
from tests.protocol.strategies import declared_versions, messages

REQUESTS: list[tuple[type[Request[Any]], int]] = [
    (cls, version) for cls, version in declared_versions() if issubclass(cls, Request)
]


def sent(response_type: type[Response], version: int, correlation_id: int = 7) -> Sent:
    return Sent(response_type, version, correlation_id, lambda _: None, timeout_ms=100, now_ms=5)


def frame(response: Response, version: int, flexible: bool, correlation_id: int = 7) -> memoryview:
    return memoryview(b"".join(response_frame(correlation_id, flexible, encode_parts(response, version))))[4:]


@given(st.data(), st.sampled_from(REQUESTS), st.text(max_size=20), st.integers(0, 2**31 - 1))
def test_frames_are_those_of_the_general_way(
    data: st.DataObject, case: tuple[type[Request[Any]], int], client_id: str, correlation_id: int
) -> None:
    cls, version = case
    request = data.draw(messages(cls, version))
    header = RequestHeader(cls.api_key, version, correlation_id, client_id)
    general = request_frame(header, cls.is_flexible(version), encode_parts(request, version))
    assert b"".join(Framer(client_id).frame(request, version, correlation_id)) == b"".join(general)


@pytest.mark.parametrize(("version", "flexible"), [(8, False), (12, True)])
def test_a_response_is_read_behind_its_header(version: int, flexible: bool) -> None:
    response = MetadataResponse(brokers=[], topics=[], cluster_id="here")
    assert response_in(frame(response, version, flexible), sent(MetadataResponse, version)) == response


def test_the_header_of_api_versions_has_version_0_always() -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=0, max_version=12)])
    assert response_in(frame(response, 4, False), sent(ApiVersionsResponse, 4)) == response


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    response = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=3)])
    assert response_in(frame(response, 0, False), sent(ApiVersionsResponse, 4)) == response


def test_another_correlation_id_is_no_answer() -> None:
    response = MetadataResponse(brokers=[], topics=[])
    with pytest.raises(MalformedMessage, match="correlation id 8, where 7 was due"):
        response_in(frame(response, 12, True, correlation_id=8), sent(MetadataResponse, 12))


def test_bytes_left_over_are_ignored_and_missing_ones_are_not() -> None:
    response = MetadataResponse(brokers=[], topics=[], cluster_id="here")
    whole = bytes(frame(response, 12, True))
    assert response_in(memoryview(whole + b"more"), sent(MetadataResponse, 12)) == response
    for size in range(len(whole)):
        with pytest.raises(MalformedMessage):
            response_in(memoryview(whole)[:size], sent(MetadataResponse, 12))


def test_the_time_of_a_request_can_begin_anew() -> None:
    request = sent(MetadataResponse, 12)
    assert (request.sent_ms, request.deadline_ms) == (5, 105)
    request.restart(50)
    assert (request.sent_ms, request.deadline_ms) == (50, 150)
    assert str(request) == "Metadata v12"


def test_a_request_without_a_body_is_a_header() -> None:
    assert b"".join(Framer("id").frame(ApiVersionsRequest(), 0, 1)) == b"\0\0\0\x0c\0\x12\0\0\0\0\0\1\0\2id"
