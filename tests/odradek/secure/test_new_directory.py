"""A new directory is there as a whole or not at all, for its owner alone, and takes no other one's place."""

import stat
from pathlib import Path

import pytest

from odradek.secure.new_directory import DirectoryExists, new_directory


def modes(directory: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in directory.rglob("*") if path.is_file()}


def test_all_of_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / "above" / "made"
    with new_directory(str(place)) as made:
        made.write("a.txt", "text\r\n\u00e9")
        made.make_dir("b/c")
        made.write("b/c/d.txt", "")
        assert not place.exists()
    assert (place / "a.txt").read_bytes() == "text\r\n\u00e9".encode()
    assert modes(place) == {0o600}
    for directory in (place, place / "b", place / "b" / "c"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [path.name for path in place.parent.iterdir()] == ["made"]


@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "made"
    match kind:
        case "directory":
            place.mkdir()
        case "file":
            place.write_text("mine")
        case _:
            place.symlink_to(tmp_path / "nowhere")
    with pytest.raises(DirectoryExists, match="is there already"), new_directory(str(place)):
        pytest.fail("it began")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), new_directory(str(tmp_path / "made")) as made:
        made.write("a.txt", "text")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_left_is_named(tmp_path: Path) -> None:
    (tmp_path / "made.partial").mkdir()
    with (
        pytest.raises(DirectoryExists, match="is there already; remove it"),
        new_directory(str(tmp_path / "made")),
    ):
        pytest.fail("it began")


def test_a_file_is_written_once(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError), new_directory(str(tmp_path / "made")) as made:
        made.write("a.txt", "text")
        made.write("a.txt", "other")
