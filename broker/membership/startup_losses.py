"""What a start finds of what this broker had: all of it, not the newest of it, or nothing.

Whoever is in sync promises to have what was acknowledged. After a machine has lost power the page cache is gone, and
with it what was acknowledged and not yet on the device; after a disk was replaced, everything. A broker that comes back
so must not be taken for in sync: before it registers it takes itself out of every in-sync set, and of the eligible
leader replicas, and returns as a follower that fetches what it lacks. Where it is the last one left there is nobody to
fetch from: it stays if it has its directory, and what may be missing is said; without it the partition stays offline
until somebody elects another replica (`odradek partitions elect --unclean`).

Each data directory is looked at by itself:

| directory id known | used when the broker ran last | clean-shutdown marker | boot id | found |
|---|---|---|---|---|
| – (never registered) | | | | FIRST |
| no | | | | NOTHING |
| yes | no | | | OLDER: a copy was put back, or the directory was away meanwhile |
| yes | yes | yes | | ALL |
| yes | yes | no | the one of the last start | ALL: the process died, the page cache did not |
| yes | yes | no | another, or unknown | NOT_THE_NEWEST |
| unknown: it cannot be used | | | | OFFLINE |

Which process used a directory last is noted in it, and the store names the one that ran last (cluster/uses.py).

The boot id is the machine's, written down at each start (`boot.id`), and in the cases of NOT_THE_NEWEST and OLDER only
when what is not certain is cut off: else the process that dies in between would leave ALL to the next. So is, in the
case of OLDER, which process uses the directory (directories/known_metadata.py).

A partition of which a sync failed (`.odradek-unsynced`) counts as NOT_THE_NEWEST whatever its directory does: the page
cache may have dropped what the device did not take.

What was found of a partition is what was found of the directory in which it lies. One that lies nowhere was in a
directory that is not there, if there is such a one: each broker's directory ids stand in the metadata (`/nodes/<id>`).

| a directory id is missing | a directory cannot be used | a partition that lies nowhere |
|---|---|---|
| no | | as below |
| yes | no | NOTHING: the directory was replaced, or taken away, and the partition with it |
| yes | yes | OFFLINE: perhaps it is in there, and comes back with it |

Where no directory is missing, such a partition was never made, or it is for `DataDirectory.open_log` to say what became
of it: ALL. But the name of a new directory is not synced, so that a loss of power may take it away with all that was
acknowledged: NOT_THE_NEWEST, where that is so of any directory. An OLDER one lacks what was made since, all of it: so
what lies nowhere is NOTHING then.

So a directory that is added loses nothing, and one that is replaced loses what was in it and nothing else. What is
OFFLINE leaves the in-sync sets, and keeps its in-sync place where it is the last; it leads nothing meanwhile
(`PartitionState.offline`).
While a directory cannot be used, the ids that are missing stay in the metadata: the next start must know of them.
"""

import logging
import posixpath
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NodeState, PartitionState, broker_key, partition_key, stopping_key
from odradek.broker.cluster.partition_changes import is_last, with_directory, without, without_directory
from odradek.broker.cluster.partition_writes import PartitionWrite, commits, with_epochs
from odradek.broker.cluster.store import Conflict, MetadataStore, Txn
from odradek.broker.cluster.uses import was_in_use
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN, Key
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.directories.meta_properties import VERSION, ForeignDirectory, read_properties
from odradek.broker.directories.metadata_revision import load_processes
from odradek.broker.disk.disk import Disk
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.membership.registration import Identity

logger = logging.getLogger(__name__)

BOOT_ID_FILE = "boot.id"
NAMED_MAX = 5


class Found(Enum):
    """What a start finds; see the module."""

    FIRST = "nothing was here before"
    ALL = "everything that was acknowledged"
    NOT_THE_NEWEST = "perhaps not what the machine had not written to its device"
    OLDER = "an older copy of a data directory, or one that was not in use when it ran last"
    NOTHING = "nothing: the data directory is a new one, or an older one without it"
    OFFLINE = "nothing of a data directory that cannot be used"


@dataclass(frozen=True, slots=True)
class Findings:
    """What a start finds of each partition."""

    places: Mapping[Key, Found] = field(default_factory=dict[Key, Found])
    elsewhere: Found = Found.FIRST
    """Of those that lie nowhere."""
    missing_ids: tuple[bytes, ...] = ()
    """The directory ids that belong to this broker, and of which it does not know where they are."""

    def of(self, key: Key) -> Found:
        return self.places.get(key, self.elsewhere)

    @property
    def losses(self) -> list[Found]:
        """For what reasons something is to be given up."""
        found = {self.elsewhere, *self.places.values()}
        return [each for each in Found if each in found and each not in (Found.FIRST, Found.ALL)]


def look(
    disk: Disk,
    data_dir: str,
    directory_id: bytes,
    boot_id: str | None,
    node: NodeState | None,
    current: str | None = None,
) -> Found:
    """What this start finds in one directory. Before the clean-shutdown marker is taken away. `current`: the process of
    the broker that the store names. Raises ForeignDirectory, OSError."""
    if node is None:
        return Found.FIRST
    if directory_id not in node.directory_ids:
        return Found.NOTHING
    if not was_in_use(load_processes(disk, data_dir), current):
        return Found.OLDER
    if disk.exists(posixpath.join(data_dir, CLEAN_SHUTDOWN)):
        return Found.ALL
    try:
        found = read_properties(disk, posixpath.join(data_dir, BOOT_ID_FILE))
    except ForeignDirectory as error:
        logger.warning("nothing says under which boot of the machine the last start was: %s", error)
        found = None
    was_same_boot = found is not None and bool(boot_id) and found.get("boot.id") == boot_id
    return Found.ALL if was_same_boot else Found.NOT_THE_NEWEST


def look_at_all(
    disk: Disk, directories: DataDirectories, boot_id: str | None, image: ClusterImage, node_id: int
) -> Findings:
    """What this start finds. Before the clean-shutdown markers are taken away. Raises ForeignDirectory, OSError."""
    node = image.nodes.get(node_id)
    if node is None:
        return Findings()
    shared = _shared_in_sync_places(image, node_id)
    online = directories.online
    here = {directory.directory_id for directory in online}
    missing_ids = tuple(directory_id for directory_id in node.directory_ids if directory_id not in here)
    elsewhere = Found.ALL
    if missing_ids:
        elsewhere = Found.OFFLINE if directories.offline else Found.NOTHING
    current = image.lineage.current(node_id)
    found_of = {each: look(disk, each.path, each.directory_id, boot_id, node, current) for each in online}
    if elsewhere is Found.ALL:
        elsewhere = _nowhere(found_of.values())
    places: dict[Key, Found] = {}
    for directory, found in found_of.items():
        directory.lacks_the_newest = found in (Found.NOT_THE_NEWEST, Found.OLDER)
        if found is Found.OLDER:
            logger.warning(
                "the data directory %s is an older copy, or was not in use when broker %d ran last: what was "
                "acknowledged since may be missing in it",
                *(directory.path, node_id),
            )
        if found is not elsewhere:  # else there is nothing to tell apart, and names need not be read
            places |= dict.fromkeys(directory.partitions(), found)
        if found is Found.ALL:
            unsynced = [key for key in shared if disk.exists(posixpath.join(directory.path_of(key), UNSYNCED))]
            places |= dict.fromkeys(unsynced, Found.NOT_THE_NEWEST)
    return Findings(places, elsewhere, missing_ids if directories.offline else ())


def _nowhere(found: Collection[Found]) -> Found:
    """What is found of a partition that lies nowhere, when this was found of the directories, and none is missing."""
    if Found.OLDER in found:
        return Found.NOTHING
    return Found.NOT_THE_NEWEST if Found.NOT_THE_NEWEST in found else Found.ALL


def _shared_in_sync_places(image: ClusterImage, node_id: int) -> list[Key]:
    """The partitions of which this broker is in sync or eligible, and has not been the only replica."""
    return [
        (topic.name, index)
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if len(state.replicas) > 1 and (node_id in state.isr or node_id in state.elr)
    ]


def note_boot(disk: Disk, data_dirs: Iterable[str], boot_id: str | None) -> None:
    """Writes down under which boot of the machine this start happens, durably: in a directory that lacks the newest,
    once its logs are back at what is certain, for a start that dies before must find the same. Raises OSError."""
    content = f"version={VERSION}\nboot.id={boot_id or ''}\n".encode()
    for data_dir in data_dirs:
        path = posixpath.join(data_dir, BOOT_ID_FILE)
        if not disk.exists(path) or disk.read_whole(path) != content:
            disk.write_whole(path, content)


async def give_up_in_sync_places(
    store: MetadataStore, identity: Identity, findings: Findings, config: BrokerConfig, *, is_marked: bool = False
) -> bool:
    """Takes the broker out of the in-sync sets to which it has not come back whole, before it registers; whether there
    was anything to look at. `is_marked`: whether the metadata calls replicas of it offline.

    A former registration is taken away first, and only then is looked what there is to give up: nobody may elect this
    broker meanwhile, and an addition that a leader has under way names that registration. One from another directory is
    somebody else's, and his in-sync places are. Raises RegistrationRefused, and what the store raises.
    """
    if not findings.losses and not is_marked:
        return False
    node_id = identity.node_id
    while True:
        snapshot = await store.read("/")
        image = ClusterImage.from_snapshot(snapshot)
        try:
            registered = image.brokers.get(node_id)
            if registered is not None:
                identity.check_former(registered)
                await store.commit(
                    Txn(
                        expect={broker_key(node_id): registered.epoch},
                        delete=(broker_key(node_id), stopping_key(node_id)),
                    )
                )
                continue
            writes = _given_up(image, node_id, findings, config)
            for txn in commits(writes, image, {}):
                await store.commit(txn)
        except Conflict:
            continue  # others decide at the same time: look again
        if writes and findings.losses:
            logger.warning(
                "broker %d comes back with %s: it left the in-sync sets of %d partitions and follows again",
                node_id,
                " and ".join(found.value for found in findings.losses),
                len(writes),
            )
        return True


def _given_up(image: ClusterImage, node_id: int, findings: Findings, config: BrokerConfig) -> list[PartitionWrite]:
    """The partitions that change."""
    writes: list[PartitionWrite] = []
    last: dict[Found, list[str]] = {}
    for topic in image.topics.values():
        topic_config = config.topic(topic.configs)
        for index, state in enumerate(topic.partitions):
            if node_id not in state.replicas:
                continue
            found = findings.of((topic.name, index))
            after = _seen(state, node_id, found, topic_config.min_insync_replicas)
            if is_last(state, node_id) and (
                found in (Found.NOTHING, Found.OFFLINE) or _may_lack(found, topic_config.flush_messages)
            ):
                last.setdefault(found, []).append(f"{topic.name}-{index}")
            if after is not state:
                after = with_epochs(state, after, image)
                writes.append(PartitionWrite(partition_key(topic.name, index), state, after))
    for found, names in last.items():
        _warn(node_id, names, found)
    return writes


def _may_lack(found: Found, flush_messages: int) -> bool:
    return found is Found.OLDER or (found is Found.NOT_THE_NEWEST and flush_messages > 1)


def _seen(state: PartitionState, node_id: int, found: Found, min_insync: int) -> PartitionState:
    """The partition's state, when this was found of it here."""
    match found:
        case Found.FIRST | Found.ALL:
            return with_directory(state, node_id)
        case Found.NOT_THE_NEWEST | Found.OLDER:
            return with_directory(without(state, node_id, min_insync, lost_data=True), node_id)
        case Found.NOTHING:
            return with_directory(without(state, node_id, min_insync, lost_data=True, lost_all=True), node_id)
        case Found.OFFLINE:
            return without_directory(state, node_id, min_insync)


def _warn(node_id: int, last: list[str], found: Found) -> None:
    names = ", ".join(last[:NAMED_MAX]) + (", …" if len(last) > NAMED_MAX else "")
    if found is Found.NOTHING:
        logger.error(
            "%d partitions were in sync on broker %d only, whose data directory is a new one, or an older one without "
            "them: they are offline until `odradek partitions elect --unclean` lets another replica lead, with what "
            "that one has: %s",
            len(last),
            node_id,
            names,
        )
    elif found is Found.OFFLINE:
        logger.error(
            "%d partitions were in sync on broker %d only, in a data directory that cannot be used: they are offline "
            "until a start with it, or `odradek partitions elect --unclean` lets another replica lead: %s",
            len(last),
            node_id,
            names,
        )
    elif found is Found.NOT_THE_NEWEST:
        logger.warning(
            "%d partitions were in sync on broker %d only, whose machine went down without a clean stop: what it had "
            "not written to its device, and acknowledged, may be missing: %s",
            len(last),
            node_id,
            names,
        )
    elif found is Found.OLDER:
        logger.warning(
            "%d partitions were in sync on broker %d only, in a data directory that is an older copy, or was not in "
            "use when it ran last: what was acknowledged since may be missing, and other replicas follow it: %s",
            len(last),
            node_id,
            names,
        )
