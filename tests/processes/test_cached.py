"""A folder of the cache is made once, and after an error from the beginning."""

from pathlib import Path

import pytest

from processes.cached import cached


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "odradek"


def test_a_folder_is_made_once(cache: Path) -> None:
    made: list[Path] = []
    for _ in range(2):
        assert cached("name", "key", made.append) == cache / "name-key"
    assert made == [cache / "name-key"]
    cached("name", "other", made.append)
    assert made == [cache / "name-key", cache / "name-other"]


def test_what_was_not_finished_is_made_again(cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("the network is gone")

    with pytest.raises(OSError, match="the network is gone"):
        cached("name", "key", fail)
    left: list[list[Path]] = []
    cached("name", "key", lambda folder: left.append(list(folder.iterdir())))
    assert left == [[]], "it starts with an empty one"
