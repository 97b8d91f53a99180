"""Python programs of others that the compatibility tests run: where their files are, fetched from PyPI once.

Applications with groups (Faust, kombu, Quix Streams) are installed into a virtual environment of their own, since they
pin clients that `requirements/dev.txt` does not. kafka-python's own tests come with its sdist, of the version that is
installed here. Both lie in the user's cache and are checked by their hashes. `python -m processes.foreign_programs`
fetches them, for a set-up. Test suites that are on no registry come in a folder of the user's
(tests/compat/test_foreign_suites.py); what they need is an environment of its own, which `make foreign` alone fetches.
"""

import hashlib
import subprocess
import sys
import tempfile
import venv
from functools import cache, partial
from pathlib import Path
from typing import Final

from processes.cached import cached
from processes.child_process import REPOSITORY

REQUIREMENTS: Final = REPOSITORY / "requirements" / "foreign.txt"
SUITES: Final = REPOSITORY / "requirements" / "suites.txt"
KAFKA_PYTHON: Final = "3.0.12"
KAFKA_PYTHON_SHA256: Final = "4ccda3616b9aa5c353d74a97f2770d6cd1b950890d77ab0e8890e09a48eeed65"
SERVICE: Final = '''"""Stands for a module that the sdist leaves out: a broker that somebody else starts."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port


class SpawnedService:
    pass
'''
FETCH_TIMEOUT_S: Final = 600.0


class ForeignProgramMissing(Exception):
    """A program could not be fetched; the text holds what pip printed."""


@cache
def applications_python() -> str:
    """The interpreter of the environment of Faust, kombu and Quix Streams. Raises ForeignProgramMissing."""
    return _python_with(REQUIREMENTS, "foreign")


@cache
def suites_python() -> str:
    """The interpreter of the environment of FastStream's and confluent-kafka-python's tests. Raises
    ForeignProgramMissing."""
    return _python_with(SUITES, "suites")


def _python_with(requirements: Path, name: str) -> str:
    """The interpreter of the environment `name` in the user's cache, with what the file lists and nothing else."""
    key = hashlib.sha256(f"{sys.version} {requirements.read_text()}".encode()).hexdigest()[:16]
    return str(cached(name, key, partial(_install, requirements)) / "bin" / "python")


def _install(requirements: Path, folder: Path) -> None:
    venv.create(folder, with_pip=True)
    _pip(str(folder / "bin" / "python"), "install", "--require-hashes", "--no-deps", "-r", str(requirements))


@cache
def kafka_pythons_tests() -> Path:
    """The unpacked sdist of kafka-python, its tests in `test/`. Raises ForeignProgramMissing."""
    return cached("kafka-python-sdist", KAFKA_PYTHON_SHA256[:16], _unpack) / f"kafka_python-{KAFKA_PYTHON}"


def _unpack(folder: Path) -> None:
    """Adds the two files that the sdist leaves out, and without which its tests cannot be imported."""
    with tempfile.TemporaryDirectory() as directory:
        requirement = Path(directory, "requirement.txt")
        requirement.write_text(f"kafka-python=={KAFKA_PYTHON} --hash=sha256:{KAFKA_PYTHON_SHA256}\n")
        sdist = ("--no-deps", "--no-build-isolation", "--no-binary", "kafka-python")
        _pip(sys.executable, "download", *sdist, "--require-hashes", "-d", directory, "-r", str(requirement))
        archive = next(Path(directory).glob("*.tar.gz"))
        subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder)], check=True)
    tests = folder / f"kafka_python-{KAFKA_PYTHON}" / "test"
    (tests / "__init__.py").touch()  # else `test` is a module of the standard library
    (tests / "service.py").write_text(SERVICE)


def _pip(python: str, *words: str) -> None:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S)
    if done.returncode != 0:
        raise ForeignProgramMissing(f"pip {words[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def main() -> None:
    sys.stdout.write(f"{applications_python()}\n{kafka_pythons_tests()}\n")


if __name__ == "__main__":
    main()
