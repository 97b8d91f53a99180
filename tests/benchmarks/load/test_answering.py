"""A server of a few APIs answers a client of ours at every version that it announces, and tells which these are."""

import socket
import threading
from collections.abc import Iterator

import pytest

from benchmarks.load.answering import Answering, Served
from benchmarks.load.wire import Wire, served_keys
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def answer(request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=request.transaction_timeout_ms, producer_epoch=version)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = Answering([Served(InitProducerIdRequest, (1, 4), answer)])

        def serve_one() -> None:
            connection, _ = server.accept()
            answering.serve(connection)

        thread = threading.Thread(target=serve_one)
        thread.start()
        with Wire(*server.getsockname()) as wire:
            yield wire
        thread.join()


def test_every_version_is_answered_flexible_or_not(wire: Wire) -> None:
    for version in range(1, 5):
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=77)
        answered = wire.ask(asked, version)
        assert (answered.producer_id, answered.producer_epoch) == (77, version)


def test_the_apis_are_announced_with_their_versions(wire: Wire) -> None:
    assert served_keys(wire) == {InitProducerIdRequest.api_key, ApiVersionsRequest.api_key}
    answered = wire.ask(ApiVersionsRequest(), 3)
    ranges = {each.api_key: (each.min_version, each.max_version) for each in answered.api_keys}
    assert ranges[InitProducerIdRequest.api_key] == (1, 4)


def test_a_newer_version_of_the_question_is_answered_with_the_oldest(wire: Wire) -> None:
    answered = wire.ask(ApiVersionsRequest(), 4, answered_in=0)
    assert ErrorCode(answered.error_code) is ErrorCode.UNSUPPORTED_VERSION
    assert answered.api_keys
