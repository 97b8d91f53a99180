"""A module of the installation in another process: which one runs, and what cannot get into its way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.runtime.own_program import own_program

TELLS = """
import gc, json, sys, odradek
def main():
    print(json.dumps([odradek.__file__, sys.argv, sys.flags.isolated, sys.path, [was_collecting, gc.isenabled()]]))
was_collecting = gc.isenabled()
"""


def told_by(
    tmp_path: Path, working_directory: Path, *arguments: str
) -> tuple[str, list[str], int, list[str], list[bool]]:
    """What a module says of the process that it is run in."""
    directory = tmp_path / "modules"
    directory.mkdir(exist_ok=True)
    (directory / "tells_it.py").write_text(TELLS)
    program = own_program("tells_it")
    program[-1] += os.pathsep + str(directory)
    done = subprocess.run(
        [*program, *arguments],
        cwd=working_directory,
        env={**os.environ, "PYTHONPATH": str(working_directory)},
        capture_output=True,
        check=True,
        text=True,
    )
    file, argv, isolated, path, collecting = json.loads(done.stdout)
    return file, argv, isolated, path, collecting


def test_it_is_this_installation_and_takes_arguments(tmp_path: Path) -> None:
    import odradek

    file, argv, isolated, _, collecting = told_by(tmp_path, tmp_path, "--one", "two")
    assert Path(file) == Path(str(odradek.__file__)).absolute()
    assert argv == ["tells_it", "--one", "two"] or Path(argv[0]).name == "tells_it.py"
    assert argv[1:] == ["--one", "two"]
    assert isolated == 1
    assert collecting == [False, True], "while it is imported, and then"


def test_the_working_directory_and_pythonpath_are_not_looked_into(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    for name in ("odradek", "runpy", "json", "struct"):
        package = elsewhere / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemExit('the wrong one')")
    file, _, _, path, _ = told_by(tmp_path, elsewhere)
    assert str(elsewhere) not in file
    assert str(elsewhere) not in path
    assert "" not in path


def test_the_working_directory_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not under another name of it either; a directory that was added for dependencies is."""
    (tmp_path / "here").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", ["", "relative", str(tmp_path / "link"), str(tmp_path / "other"), *sys.path])
    directories = own_program("odradek")[-1].split(os.pathsep)
    assert str(tmp_path / "other") in directories
    assert not {"", "relative", str(tmp_path / "here"), str(tmp_path / "link")} & set(directories)


def test_a_command_of_ours_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [*own_program("odradek.cli"), "--version"], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert "odradek" in done.stdout


def test_an_interpreter_that_cannot_be_started_again_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(OSError, match="cannot start it for another process"):
        own_program("odradek")
    monkeypatch.delattr(sys, "frozen")
    monkeypatch.setattr(sys, "executable", None)
    with pytest.raises(OSError, match="cannot start it for another process"):
        own_program("odradek")
