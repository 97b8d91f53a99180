"""Where the archive of Kafka's classes belongs: it fits one JVM and one set of jars, and others look elsewhere."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import class_archive, jars


@pytest.fixture(autouse=True)
def no_memory() -> Iterator[None]:
    for cached in (jars.java, class_archive.class_archive):
        cached.cache_clear()
    yield
    for cached in (jars.java, class_archive.class_archive):
        cached.cache_clear()


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command that says what version it is, and a cache and jars of our own."""
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.write_text("""#!/bin/sh\necho 'openjdk version "17.0.2"' >&2\n""")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    resolves_to(monkeypatch, "kafka-1.jar")
    return command


def resolves_to(monkeypatch: pytest.MonkeyPatch, jar: str) -> None:
    def resolve(*coordinates: str) -> tuple[Path, ...]:
        assert coordinates == jars.APACHE_KAFKA
        return (Path(jar),)

    monkeypatch.setattr(class_archive, "resolve", resolve)


def test_an_archive_is_there_once_it_is_made(java: Path) -> None:
    assert class_archive.class_archive() is None
    path = class_archive.archive_path()
    path.parent.mkdir(parents=True)
    path.touch()
    class_archive.class_archive.cache_clear()
    assert class_archive.class_archive() == path


def test_another_jvm_and_other_jars_have_one_of_their_own(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [class_archive.archive_path()]
    java.write_text(java.read_text().replace("17.0.2", "17.0.3"))
    paths.append(class_archive.archive_path())
    resolves_to(monkeypatch, "kafka-2.jar")
    paths.append(class_archive.archive_path())
    assert len(set(paths)) == 3
