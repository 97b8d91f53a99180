"""That `import odradek` tells which foreign `broker`, `client` or `protocol` hides ours, in a fresh interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import odradek

HOME = Path(odradek.__file__).resolve().parent.parent


def import_odradek(*path: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(entry) for entry in (*path, HOME))}
    command = [sys.executable, "-P", "-c", f"{before}\nimport odradek"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.strip().splitlines()[-1]


def test_ours_alone_are_imported_without_a_word() -> None:
    done = import_odradek()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["broker", "client", "protocol"])
def test_a_foreign_package_is_told_with_both_paths(tmp_path: Path, name: str) -> None:
    foreign = tmp_path / name
    foreign.mkdir()
    (foreign / "__init__.py").touch()
    done = import_odradek(tmp_path)
    assert done.returncode == 1
    sentence = f"Another `{name}` at {foreign} hides Odradek's own at {HOME / name}"
    assert last_line(done).startswith(f"ImportError: {sentence}"), done.stderr


def test_a_foreign_module_file_is_told_too(tmp_path: Path) -> None:
    """Somebody's script client.py in the directory from which Python was started."""
    foreign = tmp_path / "client.py"
    foreign.touch()
    done = import_odradek(tmp_path)
    assert done.returncode == 1
    assert f"Another `client` at {foreign} hides" in last_line(done)


def test_a_foreign_package_that_is_imported_already_is_told(tmp_path: Path) -> None:
    foreign = tmp_path / "protocol"
    foreign.mkdir()
    (foreign / "__init__.py").touch()
    before = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import protocol; del sys.path[0]"
    done = import_odradek(before=before)
    assert done.returncode == 1
    assert f"Another `protocol` at {foreign} hides" in last_line(done)


def test_a_missing_package_is_told(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="should lie at"):
        odradek.refuse_hidden_packages(tmp_path, ("no_such_package",))
