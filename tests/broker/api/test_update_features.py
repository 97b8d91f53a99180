"""UpdateFeatures: what is finalized is done already, nothing is taken back, in every version."""

import pytest

from odradek.broker.cluster.features import ENVELOPE, GROUP_VERSION
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.groups import finalize
from tests.broker.support import ask, running_broker

VERSIONS = range(3)
NO_RESULTS_SINCE = 2


async def update(context: Context, version: int, *levels: tuple[str, int]) -> tuple[ErrorCode, list[ErrorCode]]:
    """The error of all, and of each."""
    updates = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level in levels]
    answer = await ask(context, UpdateFeaturesRequest(feature_updates=updates), version)
    assert bool(answer.error_code) == bool(answer.error_message)
    assert all(bool(each.error_code) == bool(each.error_message) for each in answer.results)
    names = [name for name, _ in levels] if version < NO_RESULTS_SINCE and not answer.error_code else []
    assert [each.feature for each in answer.results] == names
    return ErrorCode(answer.error_code), [ErrorCode(each.error_code) for each in answer.results]


async def test_a_level_that_is_finalized_is_done() -> None:
    async with running_broker() as context:
        for version in VERSIONS:
            results = [ErrorCode.NONE] if version < NO_RESULTS_SINCE else []
            assert await update(context, version, (GROUP_VERSION, 1)) == (ErrorCode.NONE, results)


@pytest.mark.parametrize(
    ("name", "level", "code"),
    [
        (GROUP_VERSION, 0, ErrorCode.FEATURE_UPDATE_FAILED),
        (GROUP_VERSION, 2, ErrorCode.INVALID_UPDATE_VERSION),
        (GROUP_VERSION, -1, ErrorCode.INVALID_UPDATE_VERSION),
        (ENVELOPE, 1, ErrorCode.INVALID_UPDATE_VERSION),
        ("share.version", 1, ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
async def test_other_levels_are_refused_with_a_sentence(name: str, level: int, code: ErrorCode) -> None:
    async with running_broker() as context:
        for version in VERSIONS:
            of_all, of_each = await update(context, version, (name, level))
            assert ((of_all,) if version >= NO_RESULTS_SINCE else (*of_each,)) == (code,)


async def test_a_level_that_a_broker_lacks_waits_for_that_broker() -> None:
    async with running_broker() as context:
        await finalize(context, {})
        assert await update(context, 2, (GROUP_VERSION, 1)) == (ErrorCode.FEATURE_UPDATE_FAILED, [])
        assert await update(context, 1, (GROUP_VERSION, 0)) == (ErrorCode.NONE, [ErrorCode.NONE])


async def test_one_that_is_refused_leaves_the_others_since_version_2_without_an_answer() -> None:
    async with running_broker() as context:
        levels = ((GROUP_VERSION, 1), (GROUP_VERSION, 2))
        results = [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
        assert await update(context, 1, *levels) == (ErrorCode.NONE, results)
        assert await update(context, 2, *levels) == (ErrorCode.INVALID_UPDATE_VERSION, [])


async def test_nothing_is_named() -> None:
    async with running_broker() as context:
        for version in VERSIONS:
            assert await update(context, version) == (ErrorCode.INVALID_REQUEST, [])
