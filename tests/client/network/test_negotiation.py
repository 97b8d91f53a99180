"""Versions in common with a broker, and how they are asked for: functions answer as brokers of all ages."""

import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from odradek.client.errors.client_errors import ConnectionFailed, UnsupportedVersion
from odradek.client.network.negotiation import SOFTWARE_NAME, SOFTWARE_PATTERN, SOFTWARE_VERSION, Versions, negotiate
from odradek.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest

BROKER = "broker 1 (kafka.test:9092)"


def answer(*ranges: tuple[int, int, int], error_code: int = 0) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in ranges]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


def versions(*ranges: tuple[int, int, int]) -> Versions:
    return Versions(BROKER, answer(*ranges))


@pytest.mark.parametrize(
    ("theirs", "at_most", "expected"),
    [
        ((0, 99), None, MetadataRequest.max_version),  # newer than we are
        ((0, 8), None, 8),  # older
        ((12, 12), None, 12),
        ((0, 13), 5, 5),
        ((0, 3), 5, 3),
    ],
)
def test_the_highest_common_version_is_taken(theirs: tuple[int, int], at_most: int | None, expected: int) -> None:
    assert versions((3, *theirs)).version_of(MetadataRequest, at_most) == expected


@pytest.mark.parametrize(
    ("theirs", "at_most", "says"),
    [
        ((90, 91), None, ["versions 90 to 91 of Produce", f"3 to {ProduceRequest.max_version}"]),
        ((0, 2), None, ["versions 0 to 2 of Produce", f"3 to {ProduceRequest.max_version}"]),
        ((7, 9), 6, ["versions 7 to 9 of Produce", "3 to 6"]),
    ],
)
def test_without_a_common_version_the_error_names_api_ranges_and_broker(
    theirs: tuple[int, int], at_most: int | None, says: list[str]
) -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        versions((0, *theirs)).version_of(ProduceRequest, at_most)
    for text in (*says, BROKER):
        assert text in str(caught.value)


def test_an_api_that_the_broker_does_not_know_is_named() -> None:
    known = versions((3, 0, 12))
    with pytest.raises(UnsupportedVersion, match=r"kafka\.test:9092\) does not know Produce"):
        known.version_of(ProduceRequest)
    assert known.offers(MetadataRequest)
    assert not known.offers(ProduceRequest)


Answers = Callable[[int], ApiVersionsResponse]


def broker(answers: Answers, asked: list[int]) -> Callable[[ApiVersionsRequest, int], Awaitable[ApiVersionsResponse]]:
    async def ask(request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        assert SOFTWARE_PATTERN.fullmatch(request.client_software_name)
        assert SOFTWARE_PATTERN.fullmatch(request.client_software_version)
        asked.append(version)
        assert len(asked) < 10
        return answers(version)

    return ask


def knows(below: int, *offers: tuple[int, int, int]) -> Answers:
    """A broker that knows the versions below one, and otherwise offers these."""
    return lambda version: answer((18, 0, 4)) if version < below else answer(*offers, error_code=35)


@pytest.mark.parametrize(
    ("age", "answers", "expected"),
    [
        ("as new", knows(5), [4]),
        ("Kafka 2.4 to 3.8", knows(4, (18, 0, 3)), [4, 3]),
        ("before 2.4", knows(3), [4, 0]),
        ("one that offers too much", knows(1, (18, 0, 9)), [4, 0]),
        ("one that offers what it does not know", knows(1, (18, 0, 3)), [4, 3, 0]),
        ("one that offers nonsense", knows(1, (18, -3, -1)), [4, 0]),
    ],
)
async def test_brokers_of_any_age_are_asked_by_a_version_that_they_know(
    age: str, answers: Answers, expected: list[int]
) -> None:
    asked: list[int] = []
    found = await negotiate(broker(answers, asked), BROKER)
    assert asked == expected, age
    assert found.offers(ApiVersionsRequest)


@pytest.mark.parametrize("error_code", [35, 42, -1, 999])
async def test_a_broker_that_refuses_altogether_is_an_error_that_may_be_tried_again(error_code: int) -> None:
    asked: list[int] = []
    with pytest.raises(ConnectionFailed, match=r"ApiVersions failed") as caught:
        await negotiate(broker(lambda version: answer(error_code=error_code), asked), BROKER)
    assert caught.value.retriable
    assert asked == ([4, 0] if error_code == 35 else [4])


def test_the_client_introduces_itself_by_this_distribution_s_version() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["name"] == SOFTWARE_NAME
    assert project["version"] == SOFTWARE_VERSION


@pytest.mark.parametrize(("epoch", "expected"), [(3, 2), (-1, 0)])
def test_finalized_levels_count_where_the_broker_knows_them(epoch: int, expected: int) -> None:
    level = FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=1)
    told = ApiVersionsResponse(api_keys=[], finalized_features_epoch=epoch, finalized_features=[level])
    assert Versions(BROKER, told).level_of("transaction.version") == expected
    assert Versions(BROKER, told).level_of("group.version") == 0
