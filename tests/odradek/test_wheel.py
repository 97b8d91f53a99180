"""What is installed: the same files however the wheel is built, all in `odradek`, beside packages of any name.

The links from odradek/ to the folders at the top level are for a checkout alone. A wheel is built without them: from a
checkout, from an sdist, and from a tree in which git wrote them as text files (core.symlinks=false, as on Windows).
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from processes.odradek_broker import REPOSITORY, OdradekBroker
from processes.wheel import build
from tests.source_rules import LINKED

BUILT_FROM = ("odradek", *LINKED, "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
SECONDS_MAX = 60.0

PROGRAM = """
import asyncio, sys
import broker, client, protocol, tests
assert (broker.MINE, client.MINE, protocol.MINE, tests.MINE) == ("broker", "client", "protocol", "tests")
from odradek import Admin, NewTopic, Producer

async def main():
    async with Admin(bootstrap_servers=sys.argv[1]) as admin:
        await admin.create_topics([NewTopic("orders", partitions=1)])
    async with Producer(bootstrap_servers=sys.argv[1]) as producer:
        acknowledged = await (await producer.send("orders", b"first"))
        print(acknowledged.offset)

asyncio.run(main())
"""


def copy_of_the_checkout(target: Path) -> Path:
    """What a build reads, links as links."""
    target.mkdir()
    for name in BUILT_FROM:
        if (REPOSITORY / name).is_dir():
            without = shutil.ignore_patterns("__pycache__")
            shutil.copytree(REPOSITORY / name, target / name, symlinks=True, ignore=without)
        else:
            shutil.copy(REPOSITORY / name, target)
    assert all((target / "odradek" / name).is_symlink() for name in LINKED)
    return target


def record_of(wheel: Path) -> list[str]:
    """The lines of its RECORD: each file with hash and size."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/RECORD")]
        return archive.read(name).decode().splitlines()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_checkout(tmp_path_factory.mktemp("checkout") / "tree")


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(checkout, "wheel", tmp_path_factory.mktemp("wheel"))


def test_it_installs_one_package(wheel: Path) -> None:
    names = {line.partition("/")[0] for line in record_of(wheel)}
    assert names == {"odradek", next(name for name in names if name.endswith(".dist-info"))}
    files = {line.partition(",")[0] for line in record_of(wheel)}
    assert {f"odradek/{name}/__init__.py" for name in LINKED} <= files
    assert "odradek/py.typed" in files


def test_built_from_an_sdist_it_has_the_same_files(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    sdist = build(checkout, "sdist", tmp_path / "sdist")
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", sdist, "-C", tmp_path / "unpacked"], check=True)
    (tree,) = (tmp_path / "unpacked").iterdir()
    assert record_of(build(tree, "wheel", tmp_path / "wheel")) == record_of(wheel)


def test_built_where_links_became_text_files_it_has_the_same_files(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(checkout, tree, symlinks=True)
    for name in LINKED:
        link = tree / "odradek" / name
        text = os.readlink(link)
        link.unlink()
        link.write_text(text)
    assert record_of(build(tree, "wheel", tmp_path / "wheel")) == record_of(wheel)


# -- beside a project with packages of the same names -----------------------------------------------------------------


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(wheel, tmp_path_factory.mktemp("environment"))


def installed(wheel: Path, directory: Path) -> Path:
    """The interpreter of an environment that holds the wheel, and finds what it depends on where the tests find it."""
    venv.create(directory, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = directory / "lib" / version / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # A directory that is named in a .pth file is searched, the .pth files in it (our checkout's) are not.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory / "bin" / "python"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("project")
    for name in (*LINKED, "tests"):
        (directory / name).mkdir()
        (directory / name / "__init__.py").write_text(f"MINE = {name!r}\n")
    return directory


class InstalledBroker(OdradekBroker):
    """`odradek serve` of the environment, started in the project's directory."""

    def __init__(self, python: Path, project: Path) -> None:
        super().__init__(project / "data", within=("env", "-C", str(project), "-u", "PYTHONPATH"))
        self.python = python

    def command(self) -> list[str]:
        return [str(self.python), *super().command()[1:]]


def test_broker_producer_and_command_run_beside_packages_of_the_same_names(python: Path, project: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str) -> str:
        command = [str(python), *arguments]
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
        )
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    assert run("-c", "import odradek; print(odradek.__file__)").startswith(str(python.parent.parent))
    with InstalledBroker(python, project) as broker:
        assert run("-c", PROGRAM, broker.bootstrap) == "0\n"
        assert "orders" in run("-m", "odradek", "topics", "list", "--bootstrap-server", broker.bootstrap)
