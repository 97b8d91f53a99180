"""That a jar which is not the recorded one is refused, and Java that is missing or old is told; no Java is started."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from processes import jars
from tests.fake_java import set_java_home

COORDINATES = ("org.example:thing:1.0",)
EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture(autouse=True)
def no_memory() -> Iterator[None]:
    jars.resolve.cache_clear()
    jars.java.cache_clear()
    yield
    jars.resolve.cache_clear()
    jars.java.cache_clear()


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty jar as the cache would give it, and checksums of our own."""
    jar = tmp_path / "thing-1.0.jar"
    jar.touch()

    def fetch(coordinates: tuple[str, ...]) -> tuple[Path, ...]:
        assert coordinates == COORDINATES
        return (jar,)

    monkeypatch.setattr(jars, "fetch", fetch)
    monkeypatch.setattr(jars, "CHECKSUMS", tmp_path / "jars.sha256")
    return jar


def test_the_recorded_jar_is_resolved(cached: Path) -> None:
    jars.CHECKSUMS.write_text(f"{EMPTY_SHA256}  thing-1.0.jar\n")
    assert jars.resolve(*COORDINATES) == (cached,)


def test_another_jar_is_refused(cached: Path) -> None:
    jars.CHECKSUMS.write_text(f"{EMPTY_SHA256}  thing-1.0.jar\n")
    cached.write_bytes(b"something else")
    with pytest.raises(jars.JarsUnresolved, match=f"recorded is {EMPTY_SHA256}"):
        jars.resolve(*COORDINATES)


def test_a_jar_without_a_record_is_refused(cached: Path) -> None:
    with pytest.raises(jars.JarsUnresolved, match=f"{cached.name} has no checksum"):
        jars.resolve(*COORDINATES)


def test_every_recorded_line_is_a_checksum() -> None:
    recorded = jars.read_checksums()
    assert len(recorded) > 40
    assert all(len(digest) == 64 and name.endswith(".jar") for name, digest in recorded.items())


def test_artifacts_alone_are_declared_without_what_they_need() -> None:
    assert 'transitive="false"' in jars.declare_dependency("org.example:thing:1.0@jar")
    assert 'transitive="true"' in jars.declare_dependency("org.example:thing:1.0")


def test_a_classifier_is_declared_beside_the_modules_own_jar() -> None:
    declared = jars.declare_dependency("org.example:thing:1.0:test")
    assert declared.count("<artifact ") == 2
    assert declared.count('m:classifier="test"') == 1
    assert "<artifact" not in jars.declare_dependency("org.example:thing:1.0")


@pytest.mark.parametrize(
    ("version", "is_refused"), [("1.8.0_402", True), ("11.0.2", True), ("17", False), ("21.0.1", False)]
)
def test_java_is_taken_from_java_home_when_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, is_refused: bool
) -> None:
    command = set_java_home(monkeypatch, tmp_path, version)
    if is_refused:
        with pytest.raises(jars.JarsUnresolved, match="is older"):
            jars.java()
    else:
        assert jars.java() == str(command)


def test_missing_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(jars.JarsUnresolved, match="Java 17 or newer is needed"):
        jars.java()
