"""What no other tool checks about the source: each rule is shown to find what it is for, then finds nothing here.

The rules stand in `source_rules.py`, the exceptions here, each with its reason; one that is not needed any more fails.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.source_rules import (
    AIR,
    FILES,
    LINKED,
    METHODS,
    forbidden_uses,
    imported_modules,
    parsed,
    runs_by_itself,
    unpinned_lines,
)

ROOT = Path(__file__).parent.parent
PACKAGES = ("odradek", *LINKED)
LINES_MAX = 500
NAMED_FILE = re.compile(
    r"\b((?:tests|broker|client|protocol|odradek|spark_jobs|benchmarks|processes)/[\w/]+\.py)(?:::(test_\w+))?"
)
TEST_NAME_CHARACTERS_MAX = 80
TESTS = re.compile(r"tests(\.|$)")
# A text is enough for what is asked of all files: to parse 2,300 of them takes 20 s on a busy machine.
OPENS = re.compile(r'(#[^\n]*\n|\s)*[rR]?"""\s*[^\s"]((?!""").)*"""[ \t]*(\n|\Z)', re.DOTALL)
TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)

# Tests of several modules together, and helpers, have no single source file.
JOINT_TESTS = ("tests/compat/", "tests/contract/", "tests/sim/")
UNMIRRORED = {
    "tests/test_source.py": "it is about all source files",
    "tests/odradek/test_wheel.py": "it is about pyproject.toml",
    "tests/test_types.py": "it is about pyproject.toml",
    "tests/protocol/test_against_apache_kafka.py": "it is about all messages",
    "tests/protocol/test_against_kafka_python.py": "it is about all messages",
    "tests/protocol/test_fuzz.py": "it is about all messages",
}
SEAMS = {
    "broker/launch/serving_in_thread.py": "a thread around a whole broker, which knows nothing of it",
    "odradek/runtime/environment.py": "the seam to clocks, entropy and threads",
    "odradek/runtime/stall_watch.py": "a thread that looks whether a loop turns",
    "odradek/runtime/tasks.py": "the seam to tasks",
    "broker/disk/atomic_file.py": "the only lock: two threads may write a checkpoint",
}
DISKS = {
    "broker/cluster/socket_store/address.py": "a Unix socket, and the descriptor of its directory",
    "broker/disk/disk_descriptors.py": "a part of it",
    "broker/disk/disk_file.py": "a part of it",
    "broker/disk/disk_page_cache.py": "a part of it",
    "broker/disk/file_disk.py": "the seam to files",
    "broker/disk/file_slice.py": "a part of it",
    "broker/disk/memory_file.py": "a file in memory, for OpenSSL, which reads private keys from files alone",
    "odradek/runtime/environment.py": "the boot id of the machine, a seam, too",
    "client/network/key_file.py": "OpenSSL reads a private key from a file and from nowhere else",
    "odradek/runtime/worker_main.py": "asks the kernel, in /proc, to end a worker first",
}


@pytest.fixture(scope="module", autouse=True)
def trees_are_forgotten() -> Iterator[None]:
    """The trees of a thousand files would be looked through by every garbage collection of this process."""
    yield
    parsed.cache_clear()


def python_files(*directories: str) -> list[Path]:
    found = [path for name in directories for path in (ROOT / name).rglob("*.py") if "__pycache__" not in path.parts]
    assert found, f"nothing in {directories}"
    return sorted(found)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def all_files() -> list[Path]:
    directories = (*PACKAGES, "processes", "tests", "benchmarks")
    return python_files(*(name for name in directories if (ROOT / name).is_dir()))


def module_name(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    return f"odradek.{name}" if name.partition(".")[0] in LINKED else name


# ----------------------------------------------------------------------------------------------------------- the rules
@pytest.mark.parametrize("text", ["import os", "", "# why\n", '""""""\nimport os', "x = 1\n", '"""x""".y\n'])
def test_a_module_that_does_not_say_what_it_is_is_found(text: str) -> None:
    assert OPENS.match(text) is None


@pytest.mark.parametrize(
    "text", ['"""What it is."""', 'r"""\nWhat \\d is."""\nx = """y"""', '#!/usr/bin/env python\n\n"""What it is."""\n']
)
def test_a_module_that_says_what_it_is_is_not_found(text: str) -> None:
    assert OPENS.match(text)


def test_tests_are_found_wherever_they_stand() -> None:
    text = "def test_a() -> None: ...\nclass X:\n    async def test_b(self): ...\n# def test_c\n"
    assert TEST.findall(text) == ["test_a", "test_b"]


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from time import monotonic",
        "import os\nkey = os.urandom(16)",
        "import asyncio as aio\nasync def f(): await aio.wait([])",
        "from asyncio import TaskGroup",
        "import asyncio\nf = asyncio.create_task",
        "def f(self): self._loop.create_task(g())",
        "async def f(loop): await loop.run_in_executor(None, g)",
        "import datetime\nnow = datetime.datetime.now()",
        "from concurrent.futures import ThreadPoolExecutor",
    ],
)
def test_what_takes_time_chance_or_tasks_from_the_air_is_found(source: str) -> None:
    assert forbidden_uses(source, AIR, METHODS)


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasync def f(): await asyncio.wait_for(g(), 1)",
        "async def f(event): await event.wait()",
        "def f(now_ms, random_bytes): return random_bytes(now_ms)",
        "import os\nname = os.path.join('a', 'b')",
    ],
)
def test_what_is_handed_in_is_not_found(source: str) -> None:
    assert forbidden_uses(source, AIR, METHODS) == []


@pytest.mark.parametrize(
    "source",
    ["open('x')", "import os\nos.fsync(3)", "from os import rename", "import shutil", "with open('x') as f: pass"],
)
def test_what_touches_files_is_found(source: str) -> None:
    assert forbidden_uses(source, FILES)


def test_what_asks_a_disk_is_not_found() -> None:
    assert forbidden_uses("def f(disk, log): disk.open('x'); disk.rename('x', 'y'); log.open()", FILES) == []


def test_lines_that_are_not_pinned_are_found() -> None:
    good = f"click==8.5.1 \\\n    --hash=sha256:{'0' * 64}\n"
    assert unpinned_lines(good) == []
    address = "https:" + "//example.invalid/simple"
    for line in (f"--index-url {address}", f"click @ {address}", "click>=8", "-e .", "click==8.5.1"):
        assert unpinned_lines(good + line) == [line]


# ----------------------------------------------------------------------------------------------------------- the files
def test_no_file_is_longer_than_its_noun_needs() -> None:
    counts = {relative(path): len(path.read_text().splitlines()) for path in all_files()}
    assert {path: count for path, count in counts.items() if count > LINES_MAX} == {}


def test_every_module_opens_with_what_it_is() -> None:
    texts = {relative(path): path.read_text() for path in all_files()}
    assert [path for path, text in texts.items() if text and not OPENS.match(text)] == []


def test_every_test_mirrors_a_source_file() -> None:
    """`tests/broker/log/test_index.py` tests `broker/log/index.py`; `test_index_recovery.py` may stand beside it."""
    astray: list[str] = []
    for path in python_files("tests"):
        name = relative(path)
        if not path.name.startswith("test_") or name in UNMIRRORED or name.startswith(JOINT_TESTS):
            continue
        directory = ROOT / path.parent.relative_to(ROOT / "tests")
        subjects = [
            neighbour.stem for place in (directory, path.parent) if place.is_dir() for neighbour in place.iterdir()
        ]
        subject = path.stem.removeprefix("test_")
        if not any(subject == source or subject.startswith(f"{source}_") for source in subjects):
            astray.append(name)
    assert astray == []
    assert [name for name in UNMIRRORED if not (ROOT / name).exists()] == []


def test_names_of_tests_can_be_read_at_a_glance() -> None:
    long = [
        f"{relative(path)}::{name}"
        for path in python_files("tests")
        for name in TEST.findall(path.read_text())
        if len(name) > TEST_NAME_CHARACTERS_MAX
    ]
    assert long == []


def test_files_and_tests_that_documents_name_are_there() -> None:
    """Who reads of a promise is sent to the test that shows it."""
    gone: list[str] = []
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for name, test in NAMED_FILE.findall(path.read_text()):
            source = ROOT / name
            if not source.exists() or (test and f"def {test}(" not in source.read_text()):
                gone.append(f"{relative(path)}: {name}{test and '::'}{test}")
    assert gone == []


def test_time_chance_and_tasks_come_from_the_seams_alone() -> None:
    refuse_uses_outside(SEAMS, {relative(path): forbidden_uses(path.read_text(), AIR, METHODS) for path in ours()})


def test_files_are_touched_by_the_disk_alone() -> None:
    refuse_uses_outside(DISKS, {relative(path): forbidden_uses(path.read_text(), FILES) for path in ours()})


def ours() -> list[Path]:
    return python_files("broker", "client", "odradek/runtime")


def refuse_uses_outside(exceptions: dict[str, str], uses: dict[str, list[str]]) -> None:
    assert {path: found for path, found in uses.items() if found and path not in exceptions} == {}
    assert [path for path in exceptions if not uses.get(path)] == [], "an exception that is no longer needed"


def test_no_module_is_dead() -> None:
    """Every module is imported by another one of ours that is not a test, can be run by itself, is an entry point, or
    its name is told to `own_program` as a constant, and it has the `main` that this calls."""
    sources = {module_name(path): path.read_text() for path in python_files(*PACKAGES)}
    benchmarks = [path.read_text() for path in all_files() if relative(path).startswith("benchmarks/")]
    used = {
        imported for name, source in sources.items() for imported in imported_modules(source) if imported != name
    }.union(*map(imported_modules, benchmarks))
    packages = {module_name(path.parent / "__init__.py") for path in python_files(*PACKAGES)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["scripts"], *project["entry-points"].values()]
    entries = {entry.partition(":")[0] for group in groups for entry in group.values()}
    programs = {
        name
        for name in sources
        if "\ndef main() -> None:" in sources[name] and any(f'"{name}"' in each for each in sources.values())
    }
    unused = sorted(sources.keys() - used - packages - entries - programs)
    dead = [name for name in unused if not runs_by_itself(sources[name])]
    assert dead == []


def test_nothing_but_tests_imports_tests() -> None:
    """What tests and benchmarks both start stands in processes/."""
    sources = {relative(path): path.read_text() for path in python_files(*PACKAGES, "processes", "benchmarks")}
    assert {path for path, text in sources.items() if any(map(TESTS.match, imported_modules(text)))} == set()


# ------------------------------------------------------------------------------------------------------- the documents
@pytest.mark.parametrize("page", ["guarantees.md", "known-bugs.md"])
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    """`file::test`. A test that was renamed shows nothing to a reader any more."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / page).read_text())
    assert len(named) > 10
    missing = [f"{file}::{test}" for file, test in named if f"def {test}(" not in text_of(ROOT / file)]
    assert missing == []


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


# ---------------------------------------------------------------------------------------------------- the requirements
@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt"])
def test_requirements_are_pinned_hashed_and_name_no_index(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    assert unpinned_lines(text) == []
    assert "://" not in text


@pytest.mark.parametrize(("name", "extras"), [("runtime.txt", []), ("dev.txt", ["spark", "dev"])])
def test_requirements_follow_pyproject(name: str, extras: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted: list[str] = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    pins = [Requirement(line.removesuffix(" \\")) for line in lines if "==" in line and not line.startswith("#")]
    versions = {pin.name: next(iter(pin.specifier)).version for pin in pins}
    for text in wanted:
        requirement = Requirement(text)
        assert requirement.name in versions, f"{requirement} is not in {name}: make requirements"
        assert requirement.specifier.contains(versions[requirement.name], prereleases=True), f"{requirement} in {name}"
