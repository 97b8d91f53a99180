"""Moves between `odradek serve` and a cluster: each step struck by a crash, an error and a loss of power; refusals."""

import errno
import random
from collections.abc import Callable, Iterator

import pytest

from odradek.broker.cluster.embedded import FILE_NAME, EmbeddedStore
from odradek.broker.cluster.journal import decode_file
from odradek.broker.cluster.keys import NodeState, node_key
from odradek.broker.directories import meta_properties
from odradek.broker.directories.cluster_layout import NOTE_FILE, broker_ids, check_whole, load_note
from odradek.broker.directories.meta_properties import ForeignDirectory, MetaProperties
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.adopt.claim import DirectoryRefused
from odradek.broker.offline.take.taking import move
from odradek.broker.server import Broker
from odradek.protocol.codec.schema import uuid_text
from odradek.protocol.primitives import Buffer
from odradek.runtime.environment import Environment
from odradek.testing.sim.world.losing_disk import ALL_IS_KEPT, ALL_IS_LOST, Fate, LosingDisk
from tests.broker.log.logs import FaultyDisk, FaultyLosingDisk
from tests.broker.offline.take.served import ID, KNOWN, LOG, NODE, SERVE, TOPIC_ID, laid_down, metadata
from tests.broker.servers import broker_on, files, started
from tests.broker.wire import batch, connected, create_topic, produced, settings, topic_id

NEW = "new"
FATES = [ALL_IS_LOST, ALL_IS_KEPT, *(Fate(random.Random(seed)) for seed in range(6))]


class Crash(BaseException):
    """The process is killed."""


def crash() -> BaseException:
    return Crash()


def full() -> BaseException:
    return OSError(errno.ENOSPC, "No space left on device")


def places(disk: MemoryDisk) -> list[str]:
    """Where there is a metadata.log."""

    def below(path: str) -> Iterator[str]:
        for name in disk.list_dir(path):
            inner = f"{path}/{name}" if path else name
            if disk.is_dir(inner):
                yield from below(inner)
            elif name == FILE_NAME:
                yield path

    return list(below(""))


def is_taken(disk: MemoryDisk) -> bool:
    return (
        places(disk) == [f"{NEW}/metadata"]
        and not disk.exists(SERVE)
        and load_note(disk, NEW) is None
        and disk.read_whole(f"{NEW}/broker-{NODE}/orders-0/{0:020}.log") == b"records"
    )


def is_back(disk: MemoryDisk) -> bool:
    return (
        places(disk) == [SERVE]
        and load_note(disk, NEW) is None
        and broker_ids(disk, NEW) == []
        and disk.read_whole(LOG) == b"records"
    )


def check_struck(disk: MemoryDisk) -> None:
    """There is one metadata.log; and a start follows it in its place, or is refused."""
    (place,) = places(disk)
    if place == SERVE:
        assert disk.read_whole(LOG) == b"records"
        assert meta_properties.load(disk, SERVE) == KNOWN
    elif place != f"{NEW}/metadata":
        assert place == f"{NEW}/broker-{NODE}"
        with pytest.raises(ForeignDirectory, match="a move between serve and new was begun and has not ended"):
            check_whole(disk, NEW)


def forward(disk: MemoryDisk) -> None:
    move(disk, SERVE, NEW)


def back(disk: MemoryDisk) -> None:
    move(disk, SERVE, NEW, is_back=True)


def taken_disk(disk: MemoryDisk) -> None:
    laid_down(disk, metadata(others={node_key(NODE + 1): NodeState((TOPIC_ID,)).encode()}))
    forward(disk)


Case = tuple[Callable[[MemoryDisk], None], Callable[[MemoryDisk], None], Callable[[MemoryDisk], bool]]
CASES = pytest.mark.parametrize(
    "case", [(laid_down, forward, is_taken), (taken_disk, back, is_back)], ids=["take", "back"]
)


# ------------------------------------------------------------------------------------------------------ struck at steps
def steps_of(case: Case) -> list[int]:
    lay_down, work, is_done = case
    disk = FaultyDisk()
    lay_down(disk)
    disk.count_anew()
    work(disk)
    assert is_done(disk)
    steps = disk.telling_steps()
    assert len(steps) > 12
    return steps


@CASES
@pytest.mark.parametrize("error", [crash, full])
def test_a_move_that_ends_at_any_step_is_gone_on_with(case: Case, error: Callable[[], BaseException]) -> None:
    lay_down, work, is_done = case
    for step in steps_of(case):
        disk = FaultyDisk()
        lay_down(disk)
        disk.fail_at(step, error, for_good=True)
        with pytest.raises((Crash, OSError)):
            work(disk)
        disk.heal()
        check_struck(disk)
        if not is_done(disk):
            work(disk)
        assert is_done(disk), step


@CASES
def test_power_lost_at_any_step_leaves_one_metadata_log(case: Case) -> None:
    lay_down, work, is_done = case
    for step in steps_of(case):
        for fate in FATES:
            disk = FaultyLosingDisk()
            lay_down(disk)
            disk.fail_at(step, crash, for_good=True)
            with pytest.raises(Crash):
                work(disk)
            after = disk.after_power_failure(fate)
            check_struck(after)
            if not is_done(after):
                work(after)
            assert is_done(after), step


@CASES
def test_power_lost_in_a_call_that_goes_on_leaves_one_metadata_log(case: Case) -> None:
    """From each state that a loss of power may leave, a second one at each step of the next call."""
    lay_down, work, is_done = case
    steps = steps_of(case)
    left: dict[str, FaultyLosingDisk] = {}
    for step in steps:
        for fate in FATES:
            disk = FaultyLosingDisk()
            lay_down(disk)
            disk.fail_at(step, crash, for_good=True)
            with pytest.raises(Crash):
                work(disk)
            after = disk.after_power_failure(fate)
            left.setdefault(repr(sorted(files(after, ""))), after)
    assert len(left) > 3, "there are states to go on from"
    for before in left.values():
        if is_done(before):
            continue
        for step in steps:
            disk = before.after_power_failure(ALL_IS_KEPT)
            disk.fail_at(step, crash, for_good=True)
            try:
                work(disk)
            except Crash:
                disk = disk.after_power_failure(ALL_IS_LOST)
                check_struck(disk)
                if not is_done(disk):
                    work(disk)
            assert is_done(disk), step


def test_power_lost_at_once_after_it_undoes_nothing() -> None:
    disk = LosingDisk()
    laid_down(disk)
    forward(disk)
    assert is_taken(disk.after_power_failure(ALL_IS_LOST))
    back(disk)
    assert is_back(disk.after_power_failure(ALL_IS_LOST))


@pytest.mark.parametrize("first", [forward, back])
def test_a_move_half_done_may_be_turned_round(first: Callable[[MemoryDisk], None]) -> None:
    other, is_done, lay_down = (back, is_back, laid_down) if first is forward else (forward, is_taken, taken_disk)
    counted = FaultyDisk()
    lay_down(counted)
    counted.count_anew()
    first(counted)
    turned = 0
    for step in counted.telling_steps():
        disk = FaultyDisk()
        lay_down(disk)
        disk.fail_at(step, crash, for_good=True)
        with pytest.raises(Crash):
            first(disk)
        disk.heal()
        if disk.exists(f"{NEW}/{NOTE_FILE}"):
            other(disk)
            assert is_done(disk), step
            turned += 1
    assert turned > 4


def test_another_file_system_is_refused_and_what_was_done_is_undone() -> None:
    """Whichever renaming is refused."""
    for refused in (SERVE, f"{NEW}/broker-{NODE}"):

        class Mounted(MemoryDisk):
            def rename(self, source: str, target: str) -> None:
                if source == refused:  # noqa: B023 - each has its own
                    raise OSError(errno.EXDEV, "Invalid cross-device link")
                super().rename(source, target)

        disk = Mounted()
        laid_down(disk)
        work, is_done = (forward, is_back) if refused == SERVE else (back, is_taken)
        if refused != SERVE:
            forward(disk)
        with pytest.raises(DirectoryRefused, match=r"on another file system.*Nothing was changed"):
            work(disk)
        assert is_done(disk)


def test_a_cluster_that_is_started_in_the_new_place_meanwhile_keeps_it() -> None:
    """Before the note was there: it holds the lock of its metadata."""

    class Started(MemoryDisk):
        def write_whole(self, path: str, data: Buffer) -> None:
            if path.endswith(NOTE_FILE):
                self.make_dir(f"{NEW}/metadata")
                self.lock(f"{NEW}/metadata/.lock")
            super().write_whole(path, data)

    disk = Started()
    laid_down(disk)
    with pytest.raises(DirectoryRefused, match="new/metadata cannot be used: another running broker"):
        forward(disk)
    assert is_back(disk), "no note is left, and nothing has moved"


# --------------------------------------------------------------------------------------------------------- what it does
def test_what_the_files_say_stays_but_for_brokers_that_hold_nothing() -> None:
    disk = MemoryDisk()
    taken_disk(disk)
    log = disk.read_whole(f"{NEW}/metadata/{FILE_NAME}")
    assert node_key(NODE + 1) in decode_file(log).entries
    assert meta_properties.load(disk, f"{NEW}/broker-{NODE}") == KNOWN
    back(disk)
    before, after = decode_file(log), decode_file(disk.read_whole(f"{SERVE}/{FILE_NAME}"))
    assert before.entries.keys() - after.entries.keys() == {node_key(NODE + 1)}
    assert after.revision == before.revision + 1


def test_a_dry_run_tells_the_steps_and_changes_nothing() -> None:
    disk = MemoryDisk()
    laid_down(disk)
    before = files(disk, SERVE)
    told = [str(step) for step in move(disk, SERVE, NEW, is_dry_run=True).steps]
    assert told == [
        "note the move in new/.odradek-take",
        "rename serve to new/broker-7",
        "rename new/broker-7/metadata.log to new/metadata/metadata.log",
        "remove the note new/.odradek-take",
    ]
    assert files(disk, SERVE) == before
    assert disk.list_dir("") == [SERVE]
    assert disk.list_dir(SERVE) == [meta_properties.FILE_NAME, FILE_NAME, "orders-0"]


async def test_brokers_serve_what_they_have_in_either_place() -> None:
    """Served, taken, run on the cluster's store, and taken back: the same topic, whose offsets go on."""
    disk = MemoryDisk()
    async with started(broker_on(disk, SERVE, node_id=NODE)) as broker, connected(broker) as client:
        await create_topic(client, "orders")
        assert (await produced(client, "orders", batch(b"a", b"b"))).base_offset == 0
        known = await topic_id(client, "orders")
    forward(disk)
    store = EmbeddedStore.open(disk, f"{NEW}/metadata")
    shared = Broker(settings(f"{NEW}/broker-{NODE}", node_id=NODE), Environment(), disk, store=store)
    async with started(shared) as broker, connected(broker) as client:
        assert await topic_id(client, "orders") == known
        assert (await produced(client, "orders", batch(b"c"))).base_offset == 2, "what was there is there"
    await store.close()
    back(disk)
    async with started(broker_on(disk, SERVE, node_id=NODE)) as broker, connected(broker) as client:
        assert await topic_id(client, "orders") == known
        assert (await produced(client, "orders", batch(b"d"))).base_offset == 3


# ------------------------------------------------------------------------------------------------------------- refusals
def refused(disk: MemoryDisk, said: str, *, is_back: bool = False) -> None:
    before = files(disk, "")
    with pytest.raises(DirectoryRefused, match=said):
        move(disk, SERVE, NEW, is_back=is_back)
    assert files(disk, "") == before


def test_a_running_broker_is_left_alone() -> None:
    disk = MemoryDisk()
    laid_down(disk)
    with_lock = disk.lock(f"{SERVE}/.lock")
    refused(disk, "serve cannot be used: another running broker holds the lock file; stop the broker")
    with_lock.release()
    forward(disk)
    with_lock = disk.lock(f"{NEW}/metadata/.lock")
    refused(disk, "new/metadata cannot be used: another running broker", is_back=True)
    with_lock.release()
    disk.lock(f"{NEW}/broker-{NODE}/.lock")
    refused(disk, "new/broker-7 cannot be used: another running broker", is_back=True)


def test_what_is_no_directory_of_serve_is_refused() -> None:
    disk = MemoryDisk()
    refused(disk, "serve is no directory: give the one that log.dirs of the broker names")
    disk.write_whole("elsewhere", b"")
    disk.make_dir(f"{SERVE}/orders-0")
    refused(disk, "serve has no meta.properties")
    meta_properties.store(disk, SERVE, KNOWN)
    refused(disk, "serve has no metadata.log, as the data directory of `odradek serve` has")
    disk.write_whole(f"{SERVE}/{FILE_NAME}", b"garbage")
    refused(disk, "serve/metadata.log cannot be used")
    disk.write_whole(f"{SERVE}/.odradek-adopted", b"version=1\n")
    refused(disk, "was adopted from Apache Kafka and never started since")


def test_metadata_that_does_not_belong_to_the_directory_is_refused() -> None:
    disk = MemoryDisk()
    laid_down(disk, known=MetaProperties("another", NODE, KNOWN.directory_id))
    refused(disk, "the metadata in serve is of cluster Rk9P4m2xT0eXK1m0Vb7n1w, and the directory of cluster another")
    disk = MemoryDisk()
    laid_down(disk, metadata(directories=(ID, TOPIC_ID)))
    refused(disk, "broker 7 has 2 data directories, and may have one")


def test_a_directory_that_holds_something_is_no_new_one() -> None:
    disk = MemoryDisk()
    laid_down(disk)
    disk.make_dir(NEW)
    disk.write_whole(f"{NEW}/something", b"")
    refused(disk, "new is not empty, it has something: give a directory that is not there yet")
    disk.remove(f"{NEW}/something")
    disk.make_dir(f"{NEW}/metadata")
    forward(disk)
    assert is_taken(disk)
    refused(disk, "serve is no data directory of a broker, and new is that of a cluster already")
    for one, other in (("a", "a"), ("a/b", "a"), ("a", "a/b")):
        with pytest.raises(DirectoryRefused, match="are one, or lie in one another"):
            move(disk, one, other)


def test_what_other_brokers_hold_keeps_it_from_going_back() -> None:
    disk = MemoryDisk()
    laid_down(disk, metadata(replicas=(NODE, NODE + 1)))
    forward(disk)
    refused(
        disk, r"1 partition\(s\) have replicas on other brokers than 7 \(orders-0\).*spread --brokers 7", is_back=True
    )


def test_a_place_that_is_taken_keeps_it_from_going_back() -> None:
    disk = MemoryDisk()
    laid_down(disk)
    refused(disk, "serve is the data directory of a broker already: start it with `odradek serve", is_back=True)
    forward(disk)
    laid_down(disk)
    refused(disk, "serve is the data directory of a broker: give a directory that is not there", is_back=True)


def test_a_broker_started_in_the_old_place_meanwhile_is_not_mixed_up() -> None:
    """Between the two places a start of `odradek serve` begins an empty broker: neither is touched."""
    disk = FaultyDisk()
    taken_disk(disk)
    disk.rename(f"{NEW}/metadata/{FILE_NAME}", f"{NEW}/broker-{NODE}/{FILE_NAME}")
    laid_down(disk, known=MetaProperties("fresh", 0, uuid_text(TOPIC_ID)))
    disk.write_whole(f"{NEW}/{NOTE_FILE}", f'serve.dir="{SERVE}"\n'.encode() + KNOWN.encode())
    refused(disk, "metadata.log is in serve and in new/broker-7: which one counts is not known")


def test_a_note_of_another_move_is_not_taken_for_this_one() -> None:
    disk = MemoryDisk()
    laid_down(disk)
    disk.make_dir(NEW)
    disk.write_whole(f"{NEW}/{NOTE_FILE}", b'serve.dir="else"\n' + KNOWN.encode())
    refused(disk, "a move between else and new has not ended: give else in place of serve")
    other = MetaProperties("another", 3, KNOWN.directory_id)
    disk.write_whole(f"{NEW}/{NOTE_FILE}", f'serve.dir="{SERVE}"\n'.encode() + other.encode())
    refused(disk, "is of the move of another directory .* of cluster another")
    disk.write_whole(f"{NEW}/{NOTE_FILE}", b"version=1\n")
    refused(disk, "the note of an `odradek cluster take`, is damaged")
