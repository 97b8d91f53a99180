"""Where the archive of Kafka's classes belongs: it fits one JVM and one set of jars, and others look elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from processes import class_archive, jars
from tests.fake_java import set_java_home


@pytest.fixture(autouse=True)
def no_memory() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    for cached in (jars.java, jars.java_version, class_archive.class_archive):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def own_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cache and jars of our own."""
    set_java_home(monkeypatch, tmp_path, "17.0.2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    resolves_to(monkeypatch, "kafka-1.jar")


def resolves_to(monkeypatch: pytest.MonkeyPatch, jar: str) -> None:
    def resolve(*coordinates: str) -> tuple[Path, ...]:
        assert coordinates == jars.APACHE_KAFKA
        return (Path(jar),)

    monkeypatch.setattr(class_archive, "resolve", resolve)


def test_an_archive_is_there_once_it_is_made() -> None:
    assert class_archive.class_archive() is None
    path = class_archive.archive_path()
    path.parent.mkdir(parents=True)
    path.touch()
    forget()
    assert class_archive.class_archive() == path


def test_another_jvm_and_other_jars_have_one_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [class_archive.archive_path()]
    set_java_home(monkeypatch, tmp_path, "17.0.3")
    forget()
    paths.append(class_archive.archive_path())
    resolves_to(monkeypatch, "kafka-2.jar")
    paths.append(class_archive.archive_path())
    assert len(set(paths)) == 3
