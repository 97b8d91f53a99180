"""Offsets that transactions commit: who may, in which batches, when they count, and what is left of what is refused."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from odradek.broker.coordinator.machine import TransactionBatch
from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.group.consumer.requests import ConsumerHeartbeat
from odradek.broker.group.offset_requests import EndTransaction
from odradek.broker.log.markers import Marker, marker_of
from odradek.broker.log.verifications import Proof, Verification
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.kept_outbox import (
    DAY_MS,
    TOPIC_IDS,
    World,
    in_transaction,
    seen,
)
from tests.broker.groups import running_groups

FIRST, SECOND, OTHER = ("orders", 0), ("orders", 1), ("bills", 0)
WEEK_MS = 7 * DAY_MS
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def code_of(operation: Callable[[], Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        operation()
    return raised.value.code


def refuse(world: World, *operations: Callable[[], Any]) -> None:
    """The log takes nothing of what these give."""
    world.outbox.refuses = True
    for operation in operations:
        operation()
    world.outbox.undo()
    world.outbox.refuses = False


# -- commits -------------------------------------------------------------------------------------------------------


def test_what_a_transaction_commits_is_pending_in_a_batch_of_its_own() -> None:
    world, proof = World(), Proof(Verification(4, -1, 0), is_coordinators=True)
    request = in_transaction("a", {FIRST: 7, OTHER: 8})._replace(producer_id=9, producer_epoch=4, proof=proof)
    assert world.ask(lambda machine, waiting, now: machine.commit_in_transaction(request, waiting, now)) == [
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    assert (world.offsets("a"), world.pending("a")) == ({}, {(9, FIRST): 7, (9, OTHER): 8})
    assert world.outbox.transactions == [TransactionBatch(9, 4, is_marker=False, proof=proof)]
    assert seen(world.replayed()) == seen(world.machine)


def test_readers_that_require_stable_offsets_wait_for_the_marker() -> None:
    world = World()
    world.commit("a", {FIRST: 5, SECOND: 6})
    world.commit_in_transaction("a", {FIRST: 7})
    assert world.fetch("a", [FIRST, SECOND], require_stable=True)[FIRST] == UNSTABLE
    assert world.fetch("a", require_stable=True)[SECOND] != UNSTABLE
    assert world.fetch("a")[FIRST] != UNSTABLE
    world.end_transaction()
    assert world.fetch("a", [FIRST], require_stable=True)[FIRST] != UNSTABLE
    assert world.offsets("a") == {FIRST: 7, SECOND: 6}


def test_metadata_that_is_too_long_is_refused_and_the_rest_is_pending() -> None:
    world = World({"offset.metadata.max.bytes": "4"})
    request = in_transaction("a", {FIRST: 7, SECOND: 8})
    request = request._replace(offsets=[request.offsets[0]._replace(metadata="12345"), request.offsets[1]])
    errors = world.ask(lambda machine, waiting, now: machine.commit_in_transaction(request, waiting, now))
    assert errors == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert world.pending("a") == {(1, SECOND): 8}
    assert world.commit_in_transaction("b", {FIRST: 7}, metadata="12345") == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert set(world.machine.groups) == {"a"}, "nothing was stored of b"


def test_a_refused_commit_leaves_what_was_pending_before() -> None:
    world = World()
    world.commit_in_transaction("a", {FIRST: 7})
    before = seen(world.machine)
    refuse(
        world,
        lambda: world.commit_in_transaction("a", {FIRST: 8, SECOND: 9}),
        lambda: world.commit_in_transaction("b", {FIRST: 1}),
    )
    assert seen(world.machine) == before
    assert set(world.machine.groups) == {"a"}


# -- who may (KIP-447) -----------------------------------------------------------------------------------------------


def test_where_there_is_no_group_one_is_made_for_who_names_no_generation() -> None:
    world = World()
    for version, code in ((5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)):
        commit = partial(world.commit_in_transaction, "a", {FIRST: 7}, member=("m", None, 0), version=version)
        assert code_of(commit) is code
    assert world.machine.groups == {}
    assert world.commit_in_transaction("a", {FIRST: 7}) == [ErrorCode.NONE]
    assert {group_id: group.protocol_type for group_id, group in world.machine.groups.items()} == {"a": None}


def test_a_member_of_a_classic_group_commits_in_its_generation() -> None:
    world = World()
    member_id, generation = world.enter("a")
    for member, code in (
        ((member_id, None, generation - 1), ErrorCode.ILLEGAL_GENERATION),
        (("nobody", None, generation), ErrorCode.UNKNOWN_MEMBER_ID),
        ((member_id, "instance", generation), ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert code_of(partial(world.commit_in_transaction, "a", {FIRST: 7}, member=member)) is code
    assert world.pending("a") == {}
    world.commit_in_transaction("a", {FIRST: 7}, member=(member_id, None, generation))
    world.commit_in_transaction("a", {SECOND: 8})
    assert world.pending("a") == {(1, FIRST): 7, (1, SECOND): 8}, "who names no member is not fenced"
    assert seen(world.replayed()) == seen(world.machine)


def test_a_classic_member_commits_while_its_rebalance_completes() -> None:
    world = World()
    member_id, generation = world.enter("a", complete=False)
    assert world.machine.groups["a"].state_name == "CompletingRebalance"
    commit = {FIRST: 7}
    assert code_of(lambda: world.commit("a", commit, member_id=member_id, generation=generation)) is (
        ErrorCode.REBALANCE_IN_PROGRESS
    )
    assert world.commit_in_transaction("a", commit, member=(member_id, None, generation)) == [ErrorCode.NONE]


def test_a_transactional_commit_keeps_no_session_alive() -> None:
    world = World()
    member_id, generation = world.enter("a")
    world.wait(9_000)
    world.commit_in_transaction("a", {FIRST: 7}, member=(member_id, None, generation))
    world.wait(1_000)
    assert world.machine.groups["a"].state_name == "Empty"


def heartbeat(world: World, member_id: str, epoch: int, owned: dict[bytes, frozenset[int]]) -> int:
    """Returns the member's epoch."""
    request = ConsumerHeartbeat(
        member_id, epoch, rebalance_timeout_ms=100_000, topic_names=frozenset(("orders",)), owned=owned
    )
    answer = world.ask(lambda machine, waiting, now: machine.consumer_heartbeat("a", request, waiting, now))
    world.settle()
    return int(answer.member_epoch)


def test_a_stale_epoch_of_a_consumer_group_is_refused_as_the_version_knows_it() -> None:
    world = World({"group.consumer.assignment.interval.ms": "0"}, partition_count=2)
    epoch = heartbeat(world, "m", 0, {})
    assert isinstance(world.machine.groups["a"], ConsumerGroup)
    assert world.commit_in_transaction("a", {FIRST: 7}, member=("m", None, epoch)) == [ErrorCode.NONE]
    for stale in (epoch + 1, epoch - 1, -1):
        for version, code in ((5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.STALE_MEMBER_EPOCH)):
            member = ("m", None, stale)
            commit = partial(world.commit_in_transaction, "a", {FIRST: 8}, member=member, version=version)
            assert code_of(commit) is code
    assert code_of(lambda: world.commit_in_transaction("a", {FIRST: 8}, member=("n", None, epoch))) is (
        ErrorCode.UNKNOWN_MEMBER_ID
    )
    assert world.commit_in_transaction("a", {SECOND: 8}) == [ErrorCode.NONE], "who names no member is not fenced"
    assert world.pending("a") == {(1, FIRST): 7, (1, SECOND): 8}


def test_an_epoch_that_is_too_old_for_one_partition_commits_none() -> None:
    """The member has one partition since its first epoch (KIP-1251), and not the other any more."""
    world = World({"group.consumer.assignment.interval.ms": "0"}, partition_count=2)
    topic_id = TOPIC_IDS["orders"]
    first = heartbeat(world, "m", 0, {})
    heartbeat(world, "n", 0, {})
    heartbeat(world, "m", first, {topic_id: frozenset((0, 1))})
    second = heartbeat(world, "m", first, {topic_id: frozenset((0,))})
    assert second > first
    member = ("m", None, first)
    assert world.commit_in_transaction("a", {FIRST: 7}, member=member) == [ErrorCode.NONE]
    refused = code_of(lambda: world.commit_in_transaction("a", {FIRST: 9, SECOND: 9}, member=member))
    assert refused is ErrorCode.ILLEGAL_GENERATION
    assert world.pending("a") == {(1, FIRST): 7}


# -- markers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_is_one_batch_of_all_groups_of_the_transaction(is_commit: bool) -> None:
    world = World()
    world.commit("a", {FIRST: 5})
    world.commit_in_transaction("a", {FIRST: 7}, producer_id=9)
    world.commit_in_transaction("b", {OTHER: 8}, producer_id=9)
    world.commit_in_transaction("c", {OTHER: 8}, producer_id=2)
    request = EndTransaction(9, 4, coordinator_epoch=3, is_commit=is_commit, transaction_version=2)
    count = len(world.outbox.batches)
    assert world.ask(lambda machine, waiting, now: machine.end_transaction(request, waiting, now)) is None
    assert (
        [world.offsets(each) for each in "abc"] == [{FIRST: 7}, {OTHER: 8}, {}] if is_commit else [{FIRST: 5}, {}, {}]
    )
    assert [world.pending(each) for each in "abc"] == [{}, {}, {(2, OTHER): 8}]
    [(_, [record])] = world.outbox.batches[count:]
    assert marker_of(*record, 0) == Marker(not is_commit, 3)
    proof = Proof(is_coordinators=True, transaction_version=2)
    assert world.outbox.transactions[count] == TransactionBatch(9, 4, is_marker=True, proof=proof)
    assert world.outbox.entities[count] == ["a", "b", "\0markers of 9"]
    assert seen(world.replayed()) == seen(world.machine)


def test_a_marker_comes_to_a_partition_where_nothing_is_pending_and_changes_nothing() -> None:
    world = World()
    world.commit_in_transaction("a", {FIRST: 7})
    world.end_transaction()
    before = seen(world.machine)
    world.end_transaction(is_commit=False)
    world.end_transaction(2)
    assert world.outbox.entities[-2:] == [["\0markers of 1"], ["\0markers of 2"]]
    assert seen(world.machine) == before == seen(world.replayed())


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_refused_marker_leaves_everything_pending_and_may_come_again(is_commit: bool) -> None:
    world = World()
    world.commit("a", {FIRST: 5})
    world.commit_in_transaction("a", {FIRST: 7, SECOND: 8})
    world.commit_in_transaction("b", {OTHER: 8})
    before = seen(world.machine)
    refuse(world, lambda: world.end_transaction(is_commit=is_commit))
    assert seen(world.machine) == before
    assert world.fetch("b", [OTHER], require_stable=True) == {OTHER: UNSTABLE}
    world.end_transaction(is_commit=True)
    assert (world.offsets("a"), world.offsets("b")) == ({FIRST: 7, SECOND: 8}, {OTHER: 8})


def test_a_group_that_went_after_a_marker_is_there_again_if_that_is_refused() -> None:
    world = World()
    world.commit_in_transaction("a", {FIRST: 7})
    before = seen(world.machine)
    refuse(world, lambda: world.end_transaction(is_commit=False), lambda: world.wait(20 * 60_000))
    assert seen(world.machine) == before != {}
    world.end_transaction()
    assert world.offsets("a") == {FIRST: 7}


def test_what_was_committed_later_counts_whichever_marker_comes_last() -> None:
    world = World()
    world.commit_in_transaction("a", {FIRST: 7}, producer_id=1)
    world.commit_in_transaction("a", {FIRST: 8}, producer_id=2)
    world.end_transaction(2)
    refuse(world, lambda: world.end_transaction(1), lambda: world.commit("a", {FIRST: 9}))
    world.end_transaction(1)
    assert world.offsets("a") == {FIRST: 8}
    assert seen(world.replayed()) == seen(world.machine)


def test_a_refused_marker_outdates_nothing() -> None:
    world = World()
    world.commit_in_transaction("a", {FIRST: 7}, producer_id=1)
    world.commit_in_transaction("a", {FIRST: 8}, producer_id=2)
    refuse(world, lambda: world.end_transaction(2))
    world.end_transaction(1)
    assert world.offsets("a") == {FIRST: 7}
    world.end_transaction(2)
    assert world.offsets("a") == {FIRST: 8}


def test_offsets_are_counted_as_commits_when_their_marker_is_in_the_log() -> None:
    world = World()
    world.commit_in_transaction("a", {FIRST: 7, SECOND: 8})
    world.commit_in_transaction("b", {FIRST: 7}, producer_id=2)
    world.commit("a", {SECOND: 9})
    assert (world.counts.commits, len(world.machine.offsets.offsets)) == (1, 1)
    refuse(world, lambda: world.end_transaction(1))
    assert world.counts.commits == 1
    world.end_transaction(1)
    world.end_transaction(2, is_commit=False)
    assert (world.counts.commits, len(world.machine.offsets.offsets)) == (2, 2), "a newer one had come for SECOND"


# -- deletion and expiry ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["group", "offset", "topic"])
def test_what_is_deleted_while_it_is_pending_no_marker_brings_back(what: str) -> None:
    world = World()
    world.commit("a", {FIRST: 5})
    world.commit_in_transaction("a", {FIRST: 7})

    def delete() -> None:
        if what == "group":
            world.delete("a")
        elif what == "offset":
            world.delete_offsets("a", FIRST)
        else:
            world.machine.topics_deleted({"orders": TOPIC_IDS["orders"]}, world.now)
            world.settle()

    before = seen(world.machine)
    refuse(world, delete)
    assert seen(world.machine) == before, "refused, it is there again"
    refuse(world, delete, world.end_transaction)
    assert seen(world.machine) == before
    delete()
    assert (world.offsets("a"), world.pending("a")) == ({}, {})
    assert seen(world.replayed()) == seen(world.machine)
    world.end_transaction()
    assert world.offsets("a") == {}
    assert seen(world.replayed()) == seen(world.machine)


def test_a_marker_waits_for_the_deletion_of_what_it_would_have_ended() -> None:
    """If the log refuses the tombstone, the offset is pending again: the marker must not be there before."""
    world = World()
    world.commit_in_transaction("a", {FIRST: 7})
    world.delete_offsets("a", FIRST)
    world.end_transaction()
    assert world.outbox.entities[-1] == ["a", "\0markers of 1"]


def test_what_is_pending_does_not_expire_and_keeps_its_group() -> None:
    world = World()
    world.commit("a", {FIRST: 5, SECOND: 6})
    world.commit_in_transaction("a", {FIRST: 7})
    world.commit_in_transaction("b", {FIRST: 7})
    world.wait(WEEK_MS + DAY_MS)
    assert (world.offsets("a"), set(world.machine.groups)) == ({FIRST: 5}, {"a", "b"})
    world.end_transaction(is_commit=False)
    world.wait(DAY_MS)
    assert world.machine.groups == {}
    assert seen(world.replayed()) == {}


def test_a_group_whose_pending_offsets_were_deleted_goes_before_their_marker() -> None:
    world = World()
    world.commit_in_transaction("a", {FIRST: 7})
    world.delete_offsets("a", FIRST)
    world.wait(20 * 60_000)
    assert world.machine.groups == {}


# -- the log -------------------------------------------------------------------------------------------------------


async def test_the_log_takes_what_the_machine_gives_and_refuses_what_is_stale() -> None:
    async with running_groups() as context:
        shard = context.groups.of("billing")
        verification = shard.partition.log.producers.verifications.begin(9, 4, -1, 0)
        proof = Proof(verification, is_coordinators=True)
        request = in_transaction("billing", {FIRST: 7, SECOND: 8})._replace(
            producer_id=9, producer_epoch=4, proof=proof
        )

        async def commit() -> ErrorCode | None:
            return await code_or_none(
                shard.ask(lambda machine, waiting, now: machine.commit_in_transaction(request, waiting, now))
            )

        async def end(producer_epoch: int, coordinator_epoch: int) -> ErrorCode | None:
            marker = EndTransaction(9, producer_epoch, coordinator_epoch, is_commit=True, transaction_version=1)
            return await code_or_none(
                shard.ask(lambda machine, waiting, now: machine.end_transaction(marker, waiting, now))
            )

        offsets = shard.machine.offsets.offsets
        assert await commit() is None
        assert await end(3, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert offsets.pending_positions("billing") == {FIRST, SECOND}
        assert await end(4, 2) is None
        assert {position: each.offset for position, each in offsets.of("billing").items()} == {FIRST: 7, SECOND: 8}
        assert await end(4, 1) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert await commit() is ErrorCode.INVALID_TXN_STATE, "the transaction has ended: it came late"
        assert not offsets.has_pending("billing")


async def code_or_none(asked: Awaitable[Any]) -> ErrorCode | None:
    try:
        await asked
    except KafkaError as error:
        return error.code
    return None
