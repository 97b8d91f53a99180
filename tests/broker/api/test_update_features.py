"""UpdateFeatures: what is finalized is done already, transaction.version is lowered and raised, the others are not, in
every version."""

import pytest

from odradek.broker.cluster.features import ENVELOPE, GROUP_VERSION, SUPPORTED, TRANSACTION_VERSION, Levels
from odradek.broker.cluster.keys import FEATURES_KEY, NodeState, encode_features, node_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.groups import finalize
from tests.broker.support import ask, running_broker

VERSIONS = range(3)
NO_RESULTS_SINCE = 2


UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


async def update(
    context: Context, version: int, *levels: tuple[str, int], kind: int = UPGRADE, validate_only: bool = False
) -> tuple[ErrorCode, list[ErrorCode]]:
    """The error of all, and of each."""
    updates = [
        FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=kind != UPGRADE)
        if version == 0
        else FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level in levels
    ]
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)
    answer = await ask(context, request, version)
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


# -- transaction.version ----------------------------------------------------------------------------------------------


async def register(context: Context, levels: Levels, *others: Levels) -> None:
    """Broker 0 has these features, and others those."""
    nodes = {number: NodeState((bytes(16),), features=each) for number, each in enumerate((levels, *others))}
    txn = Txn(put={node_key(number): node.encode() for number, node in nodes.items()})
    await context.metadata.applied(await context.metadata.store.commit(txn))


def finalized(context: Context) -> tuple[int, int | None]:
    """And whether that is held there."""
    image = context.metadata.image
    return image.features[TRANSACTION_VERSION], image.held_features.get(TRANSACTION_VERSION)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
async def test_a_transaction_version_is_lowered_and_raised_and_stays(version: int, kind: int) -> None:
    async with running_broker() as context:
        await register(context, SUPPORTED)
        others = {name: level for name, level in context.metadata.image.features.items() if name != TRANSACTION_VERSION}
        for level, change, held in ((1, kind, 1), (0, kind, 0), (1, UPGRADE, 1), (2, UPGRADE, None)):
            before = context.metadata.image.features_revision
            assert (await update(context, version, (TRANSACTION_VERSION, level), kind=change))[0] is ErrorCode.NONE
            assert finalized(context) == (level, held)
            assert context.metadata.image.features_revision > before, "clients take the newest they were told"
            assert others.items() <= context.metadata.image.features.items()


@pytest.mark.parametrize(("level", "kind"), [(0, UPGRADE), (2, SAFE_DOWNGRADE)])
async def test_what_is_lower_is_asked_for_as_a_downgrade_and_nothing_else_is(level: int, kind: int) -> None:
    async with running_broker() as context:
        await register(context, SUPPORTED)
        await update(context, 1, (TRANSACTION_VERSION, 1), kind=SAFE_DOWNGRADE)
        code, _ = await update(context, 2, (TRANSACTION_VERSION, level), kind=kind)
        assert (code, finalized(context)) == (ErrorCode.INVALID_UPDATE_VERSION, (1, 1))


async def test_a_transaction_version_is_raised_to_what_every_registered_broker_has() -> None:
    async with running_broker() as context:
        await register(context, SUPPORTED, {**SUPPORTED, TRANSACTION_VERSION: 1})
        await update(context, 1, (TRANSACTION_VERSION, 0), kind=SAFE_DOWNGRADE)
        assert await update(context, 2, (TRANSACTION_VERSION, 2)) == (ErrorCode.FEATURE_UPDATE_FAILED, [])
        assert finalized(context) == (0, 0)
        assert await update(context, 2, (TRANSACTION_VERSION, 1)) == (ErrorCode.NONE, [])
        assert finalized(context) == (1, 1)


async def test_who_only_wants_to_know_changes_nothing() -> None:
    async with running_broker() as context:
        level = (TRANSACTION_VERSION, 1)
        assert (await update(context, 2, level, kind=SAFE_DOWNGRADE, validate_only=True))[0] is ErrorCode.NONE
        assert finalized(context) == (2, None)


async def test_of_two_updates_of_which_one_is_refused_all_or_nothing_is_done() -> None:
    async with running_broker() as context:
        levels = ((TRANSACTION_VERSION, 1), (GROUP_VERSION, 0))
        assert (await update(context, 2, *levels, kind=SAFE_DOWNGRADE))[0] is ErrorCode.FEATURE_UPDATE_FAILED
        assert finalized(context) == (2, None)
        results = [ErrorCode.NONE, ErrorCode.FEATURE_UPDATE_FAILED]
        assert await update(context, 1, *levels, kind=SAFE_DOWNGRADE) == (ErrorCode.NONE, results)
        assert finalized(context) == (1, 1)


async def test_what_others_change_meanwhile_is_not_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker() as context:
        store = context.metadata.store
        commit = store.commit

        async def commit_late(txn: Txn) -> int:
            await commit(Txn(put={FEATURES_KEY: encode_features({**SUPPORTED, "of tomorrow": 1})}))
            return await commit(txn)

        monkeypatch.setattr(store, "commit", commit_late)
        code, _ = await update(context, 2, (TRANSACTION_VERSION, 1), kind=SAFE_DOWNGRADE)
        assert code is ErrorCode.NOT_CONTROLLER
        assert finalized(context) == (2, None)
