"""The classes that Apache Kafka loads, made ready once for all of its JVMs, which start with a quarter less work then.

    path = class_archive()                       # None: nobody has made it, and everything takes a little longer

A JVM writes it at its end (`-XX:ArchiveClassesAtExit`; `python -m processes.apache_kafka` has a node do so, a step of
the set-up), and others take it (`-XX:SharedArchiveFile`). It lies beside the jars, under a name that follows from them
and from the JVM, for it fits no others.
"""

import functools
import hashlib
from pathlib import Path

from processes.jars import APACHE_KAFKA, cache_directory, java, java_version, resolve


@functools.cache
def class_archive() -> Path | None:
    """Where it is, if it has been made. Raises JarsUnresolved."""
    path = archive_path()
    return path if path.exists() else None


def archive_path() -> Path:
    """Where it belongs. Raises JarsUnresolved."""
    fits = " ".join((java_version(java()), *map(str, resolve(*APACHE_KAFKA))))
    return cache_directory() / f"classes-{hashlib.sha256(fits.encode()).hexdigest()[:16]}.jsa"
