"""Java archives by their Maven coordinates, for the tests and benchmarks that need Apache Kafka itself.

They are resolved with the Ivy that pyspark bundles, so nothing but Java has to be there, and kept in the user's cache
directory. Every file must have the SHA-256 that `jars.sha256` beside this module records (format: `sha256sum`'s), at
each resolve. `python -m processes.jars` resolves everything and prints the lines that are missing from it.
"""

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

KAFKA_VERSION = "4.3.1"
# `@jar`, as Gradle writes it: without its own needs, which are all of Kafka Connect. The tools that we run use none.
APACHE_KAFKA = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}@jar",
    "org.slf4j:slf4j-simple:1.7.36",
)
LATER_CLIENTS = ("org.apache.kafka:kafka-clients:4.4.0@jar",)
"""Their messages have a few versions more."""
EARLIER_CLIENTS = ("org.apache.kafka:kafka-clients:3.9.1@jar",)
"""They know of no transaction version 2."""
# With the programs of its own system tests, which lie in its test jar and need that of the clients.
KAFKA_STREAMS = (
    f"org.apache.kafka:kafka-streams:{KAFKA_VERSION}:test",
    f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}:test",
    "org.slf4j:slf4j-simple:1.7.36",
)
KAFKA_CONNECT = (
    f"org.apache.kafka:connect-runtime:{KAFKA_VERSION}",
    f"org.apache.kafka:connect-file:{KAFKA_VERSION}",
    "org.slf4j:slf4j-simple:1.7.36",
)
SETS = (APACHE_KAFKA, LATER_CLIENTS, EARLIER_CLIENTS, KAFKA_STREAMS, KAFKA_CONNECT)

CHECKSUMS = Path(__file__).with_name("jars.sha256")
JAVA_VERSION_MIN = 17
RESOLVE_TIMEOUT_S = 600

SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="odradek" module="jars"/>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" transitive="{}" conf="default->default">{}</dependency>'
ARTIFACT = '<artifact name="{}" type="jar" ext="jar"{}/>'


class JarsUnresolved(Exception):
    """Java is missing, Ivy could not fetch, or a file is not the one that was recorded."""


@functools.cache
def java() -> str:
    """The Java command: JAVA_HOME's, else the one on PATH. Raises JarsUnresolved when it is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if command is None or not Path(command).exists():
        raise JarsUnresolved(f"Java {JAVA_VERSION_MIN} or newer is needed: set JAVA_HOME or put java on PATH.")
    found = re.search(r'version "(\d+)', java_version(command))
    if found is None or int(found[1]) < JAVA_VERSION_MIN:
        raise JarsUnresolved(f"Java {JAVA_VERSION_MIN} or newer is needed, and {command} is older.")
    return command


@functools.cache
def java_version(command: str) -> str:
    """All that a Java command says of itself."""
    told = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)
    return told.stderr + told.stdout


@functools.cache
def resolve(*coordinates: str) -> tuple[Path, ...]:
    """The jars of `group:artifact:version` coordinates and of all they need, fetched when missing, checksums verified.

    `group:artifact:version:classifier` is the jar of that classifier beside the module's own. Raises JarsUnresolved.
    """
    jars = fetch(coordinates)
    recorded = read_checksums()
    for jar in jars:
        if jar.name not in recorded:
            raise JarsUnresolved(
                f"{jar.name} has no checksum in {CHECKSUMS.name}; `python -m processes.jars` prints it."
            )
        if (digest := sha256(jar)) != recorded[jar.name]:
            raise JarsUnresolved(f"{jar} has SHA-256 {digest}, recorded is {recorded[jar.name]}: remove the file.")
    return jars


def fetch(coordinates: tuple[str, ...]) -> tuple[Path, ...]:
    """The jars as they lie in the cache, unverified. One process at a time fetches; the others wait for it."""
    directory = cache_directory()
    directory.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(" ".join(coordinates).encode()).hexdigest()[:16]
    listing = directory / f"{key}.classpath"
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        jars = read_listing(listing)
        if not jars or not all(jar.exists() for jar in jars):
            run_ivy(directory, coordinates, listing)
            jars = read_listing(listing)
    return jars


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "odradek", "jars")


def read_listing(listing: Path) -> tuple[Path, ...]:
    if not listing.exists():
        return ()
    return tuple(Path(name) for name in listing.read_text().strip().split(os.pathsep) if name)


def read_checksums() -> dict[str, str]:
    lines = CHECKSUMS.read_text().splitlines() if CHECKSUMS.exists() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines if line)}


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def declare_dependency(coordinate: str) -> str:
    coordinate, _, artifact_only = coordinate.partition("@")
    group, name, version, *classifiers = coordinate.split(":")
    artifacts = [ARTIFACT.format(name, "")] if classifiers else []
    artifacts += [ARTIFACT.format(name, f' m:classifier="{each}"') for each in classifiers]
    return DEPENDENCY.format(group, name, version, "false" if artifact_only else "true", "".join(artifacts))


def run_ivy(cache: Path, coordinates: tuple[str, ...], listing: Path) -> None:
    bundled = sorted(Path(pyspark.__path__[0], "jars").glob("ivy-*.jar"))
    if not bundled:
        raise JarsUnresolved("pyspark bundles no Ivy: is the extra `spark` installed?")
    with tempfile.TemporaryDirectory() as directory:
        settings, module, found = Path(directory, "settings.xml"), Path(directory, "ivy.xml"), Path(directory, "found")
        settings.write_text(SETTINGS)
        dependencies = "".join(map(declare_dependency, coordinates))
        module.write_text(MODULE.format(dependencies=dependencies))
        command = [java(), "-jar", str(bundled[-1]), "-settings", str(settings), "-ivy", str(module)]
        command += ["-cache", str(cache), "-confs", "default", "-cachepath", str(found)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=RESOLVE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise JarsUnresolved(f"Ivy did not finish within {RESOLVE_TIMEOUT_S} s.") from None
        if done.returncode != 0 or not found.exists():
            raise JarsUnresolved(f"Ivy could not resolve {', '.join(coordinates)}:\n{done.stdout[-4000:]}{done.stderr}")
        # Written whole or not at all: a listing that exists names a complete set.
        partial = listing.with_suffix(".partial")
        partial.write_text(found.read_text())
        partial.replace(listing)


def main() -> None:
    recorded = read_checksums()
    for jar in sorted({jar for coordinates in SETS for jar in fetch(coordinates)}):
        if jar.name not in recorded:
            sys.stdout.write(f"{sha256(jar)}  {jar.name}\n")


if __name__ == "__main__":
    main()
