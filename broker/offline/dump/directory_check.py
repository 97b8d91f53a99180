"""A whole data directory: the small files at its top, and every partition."""

import posixpath
from collections.abc import Iterator

from odradek.broker.directories import meta_properties
from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN, Key
from odradek.broker.directories.partition_directories import partition_of, suffix_of
from odradek.broker.disk.disk import Disk
from odradek.broker.log.checkpoint import PARTITION_METADATA
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.names import Kind, in_order, name_of, partitions_in_order
from odradek.broker.offline.dump.offsets_check import check_offsets, read_entries
from odradek.broker.offline.dump.partition_check import Report, check_partition
from odradek.protocol.primitives import uuid_text

_AT_THE_TOP = (Kind.META_PROPERTIES, Kind.CLEAN_SHUTDOWN, Kind.OFFSETS)
_QUIET = (".lock", "bootstrap.checkpoint")


def check_data_directory(disk: Disk, path: str) -> Iterator[Report | Note]:
    """Yields a report for each partition, and notes. Raises Inconsistency, OSError."""
    names = disk.list_dir(path)
    is_clean = CLEAN_SHUTDOWN in names
    if is_clean:
        yield Note(_join(path, CLEAN_SHUTDOWN), "the broker stopped cleanly")
    check_meta_properties(disk, path)
    checkpoints = [
        (checkpoint, read_entries(disk, checkpoint))
        for checkpoint in (_join(path, file_name) for file_name, name in in_order(names) if name.kind is Kind.OFFSETS)
    ]
    directories = {name for name in names if disk.is_dir(_join(path, name))}
    yield from _strangers(path, names, directories)
    reports: dict[Key, Report] = {}
    for name in partitions_in_order(directories):
        report = _check_partition(disk, _join(path, name), is_clean)
        if report is not None and (key := partition_of(name)) is not None:
            reports[key] = report
            yield report
    _check_topic_ids(reports)
    for checkpoint, entries in checkpoints:
        yield from check_offsets(checkpoint, entries, reports, is_clean=is_clean)


def check_meta_properties(disk: Disk, path: str) -> None:
    """Raises Inconsistency where `meta.properties` is missing or damaged; OSError."""
    file = _join(path, meta_properties.FILE_NAME)
    try:
        properties = meta_properties.load(disk, path)
    except meta_properties.ForeignDirectory as error:
        raise Inconsistency(file, str(error)) from error
    if properties is None:
        raise Inconsistency(file, "it is missing: nothing says whose directory this is")


def _strangers(path: str, names: list[str], directories: set[str]) -> Iterator[Note]:
    """Names what is not looked into."""
    for name in names:
        known = name_of(name)
        if name in directories:
            if suffix_of(name) is not None:
                yield Note(_join(path, name), "a partition that was put aside; it is not looked into")
            elif partition_of(name) is None:
                yield Note(_join(path, name), "no partition; it is not looked into")
        elif known is not None and known.kind is Kind.METADATA:
            yield Note(_join(path, name), "the cluster's metadata, which is not looked into")
        elif name.endswith(".tmp"):
            yield Note(_join(path, name), "left over; it is replaced or removed")
        elif name not in _QUIET and (known is None or known.kind not in _AT_THE_TOP):
            yield Note(_join(path, name), "no part of a data directory")


def _check_partition(disk: Disk, path: str, is_clean: bool) -> Report | None:
    """None for one that went away, as when its topic is deleted."""
    try:
        return check_partition(disk, path, is_clean=is_clean)
    except FileNotFoundError:
        if disk.exists(path):
            raise
        return None


def _check_topic_ids(reports: dict[Key, Report]) -> None:
    """All partitions of a topic have its id, and no other topic has it."""
    ids: dict[str, bytes] = {}
    topics: dict[bytes, str] = {}
    for (topic, _), report in reports.items():
        path, text = _join(report.path, PARTITION_METADATA), uuid_text(report.topic_id)
        if ids.setdefault(topic, report.topic_id) != report.topic_id:
            raise Inconsistency(path, f"topic id {text}, where another partition has {uuid_text(ids[topic])}")
        if topics.setdefault(report.topic_id, topic) != topic:
            raise Inconsistency(path, f"topic id {text}, which is that of topic {topics[report.topic_id]}, too")


def _join(path: str, name: str) -> str:
    return posixpath.join(path, name)
