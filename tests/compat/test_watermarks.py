"""The ends of logs are asked for again where a lead has moved, and for no other reason."""

from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from tests.compat.watermarks import watermarks


class Answering:
    """In place of a consumer: fails with these codes, one after the other, then tells 3 and 9."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)

    def get_watermark_offsets(self, *_args: Any) -> tuple[int, int]:
        if self._codes:
            raise KafkaException(KafkaError(self._codes.pop(0)))
        return 3, 9


def test_a_lead_that_has_moved_is_asked_again() -> None:
    moving = Answering(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
    assert watermarks(cast(Consumer, moving), "t", 0) == (3, 9)


def test_any_other_error_is_raised() -> None:
    with pytest.raises(KafkaException):
        watermarks(cast(Consumer, Answering(KafkaError.UNKNOWN_TOPIC_OR_PART)), "t", 0)
