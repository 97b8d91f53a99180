"""How files and connections share what the limit of open files allows, and how that is raised."""

import resource
import subprocess
import sys

import pytest

from odradek.broker.disk.descriptor_limits import descriptor_budget, raise_descriptor_limit, socket_budget
from processes.child_process import REPOSITORY

LIMITS = """
import resource
from odradek.broker.disk.descriptor_limits import descriptor_budget, raise_descriptor_limit
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
assert descriptor_budget() == 32
assert raise_descriptor_limit() == hard
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
"""


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one() -> None:
    """In a process of its own, for a limit cannot be put back by everybody."""
    subprocess.run([sys.executable, "-c", LIMITS], cwd=REPOSITORY, check=True)


def test_files_take_half_of_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    def limit(soft: int) -> int:
        def both(_: int) -> tuple[int, int]:
            return soft, soft

        monkeypatch.setattr(resource, "getrlimit", both)
        return descriptor_budget()

    assert limit(1024) == 512
    assert limit(2) == 4
    assert limit(1 << 30) == 32_768
    assert limit(resource.RLIM_INFINITY) == 32_768


def test_a_limit_that_cannot_be_raised_is_put_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    def limits(_: int) -> tuple[int, int]:
        return 256, -1

    monkeypatch.setattr(resource, "getrlimit", limits)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_descriptor_limit() == 256


@pytest.mark.parametrize(
    ("soft", "files", "sockets"),
    [
        (1024, 512, 492),
        (64, 32, 12),
        (10, 5, 4),
        (1 << 20, 32_768, (1 << 20) - 32_788),
        (resource.RLIM_INFINITY, 32_768, sys.maxsize),
    ],
)
def test_files_and_connections_share_the_descriptors(
    monkeypatch: pytest.MonkeyPatch, soft: int, files: int, sockets: int
) -> None:
    def limits(_: int) -> tuple[int, int]:
        return soft, soft

    monkeypatch.setattr(resource, "getrlimit", limits)
    assert (descriptor_budget(), socket_budget()) == (files, sockets)
