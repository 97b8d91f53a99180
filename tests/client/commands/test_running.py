"""How a command ends: its exit code and what it says, for each kind of error, for signals and for a closed pipe."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.running import exit_code_of
from odradek.client.errors.client_errors import (
    AuthenticationFailed,
    AuthorizationError,
    BufferExhausted,
    ClientError,
    ConfigError,
    ConnectionFailed,
    DeliveryTimeout,
    MalformedResponse,
    MetadataTimeout,
    RequestTimedOut,
    UnknownTopic,
    broker_error,
)
from odradek.client.fetching.fetched import CorruptRecords
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from tests.signals import heeding_ctrl_c

REPOSITORY = Path(__file__).resolve().parents[3]
PRELUDE = """
import asyncio, sys
from odradek.client.commands.failures import CommandFailed, OutputClosed
from odradek.client.commands.output import print_line
from odradek.client.commands.running import run
from odradek.client.errors.client_errors import *
"""


def start(body: str, *, is_verbose: bool = False) -> subprocess.Popen[str]:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    program = f"{PRELUDE}\nasync def main():\n{indented}\n\nrun(main, is_verbose={is_verbose})\n"
    return subprocess.Popen(
        heeding_ctrl_c(sys.executable, "-c", program),
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(body: str, *, is_verbose: bool = False) -> tuple[int, str, str]:
    process = start(body, is_verbose=is_verbose)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandFailed("no"), 1),
        (CommandFailed("no", 2), 2),
        (ConfigError("wrong"), 2),
        (UnknownTopic(3), 1),
        (AuthorizationError(29), 1),
        (AuthenticationFailed("broker 1", "SASL PLAIN", "wrong password"), 1),
        (ClientError("other"), 1),
        (OSError("disk"), 1),
        (ConnectionFailed("broker 1"), 3),
        (RequestTimedOut("Metadata", "broker 1", 5), 3),
        (MetadataTimeout("t", 5), 3),
        (DeliveryTimeout("t", 0, 5), 3),
        (BufferExhausted("t", 1, 2, 5), 3),
        (MalformedResponse("Metadata", "broker 1", "it is HTTP"), 3),
        (broker_error(ErrorCode.NETWORK_EXCEPTION, "", "connecting to broker 1"), 3),
        (broker_error(ErrorCode.LEADER_NOT_AVAILABLE, "", "looking for the leader of t-0"), 3),
        (broker_error(ErrorCode.NOT_CONTROLLER, "", "CreateTopics of t"), 3),
        (broker_error(ErrorCode.REQUEST_TIMED_OUT, "", "CreateTopics of t"), 3),
        (broker_error(ErrorCode.UNKNOWN_TOPIC_ID, "", "Fetch of t-0"), 1),
        (broker_error(ErrorCode.INVALID_CONFIG, "", "CreateTopics of t"), 1),
        (CorruptRecords(TopicPartition("t", 0), 7, ErrorCode.CORRUPT_MESSAGE, "the batch fails its checksum"), 1),
        (ItemsFailed("X", {1: ConnectionFailed("broker 1"), 2: RequestTimedOut("X", "broker 1", 5)}, {}), 3),
        (ItemsFailed("X", {1: ConnectionFailed("broker 1"), 2: UnknownTopic(3)}, {}), 1),
        (ItemsFailed("X", {1: ConnectionFailed("broker 1"), 2: broker_error(ErrorCode.NOT_CONTROLLER)}, {}), 3),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert exit_code_of(error) == code


def test_what_goes_well_ends_with_0_and_prints() -> None:
    assert ended("print_line('done')") == (0, "done\n", "")


def test_an_error_is_one_sentence_and_no_traceback() -> None:
    code, out, err = ended("raise UnknownTopic(3, what='Metadata of orders')")
    assert (code, out) == (1, "")
    assert err.startswith("Error: Metadata of orders failed with UNKNOWN_TOPIC_OR_PARTITION (3)")
    assert len(err.splitlines()) == 1


def test_each_item_that_failed_has_its_sentence() -> None:
    raised = "raise ItemsFailed('X', {1: UnknownTopic(3, what='one'), 2: UnknownTopic(3, what='two')}, {})"
    code, _, err = ended(f"from odradek.client.admin.errors import ItemsFailed\n{raised}")
    assert code == 1
    assert [line.split()[:2] for line in err.splitlines()] == [["Error:", "one"], ["Error:", "two"]]


def test_a_mistake_of_ours_is_told_as_one_and_shown_on_request() -> None:
    code, _, err = ended("{}['x']")
    assert (code, err) == (1, "Error: KeyError: 'x'. This is a mistake in odradek; --verbose shows where.\n")
    code, _, err = ended("{}['x']", is_verbose=True)
    assert (code, "Traceback" in err) == (1, True)


def test_what_the_client_logs_is_for_those_who_ask_but_for_what_a_reader_misses() -> None:
    body = "from logging import getLogger\ngetLogger('odradek.client.cluster.nodes').error('x')\n"
    body += "getLogger('odradek.client.fetching.fetcher').warning('y')"
    assert ended(body) == (0, "", "WARNING odradek.client.fetching.fetcher: y\n")
    code, _, err = ended(body, is_verbose=True)
    assert (code, "ERROR odradek.client.cluster.nodes: x\n" in err) == (0, True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_lets_the_command_clean_up_and_gives_the_code_of_the_shell(number: signal.Signals, code: int) -> None:
    process = start(
        "try:\n    print_line('ready')\n    await asyncio.sleep(60)\nfinally:\n    print_line('cleaned up')"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (code, "cleaned up\n", "")


def test_a_closed_pipe_ends_it_without_a_word() -> None:
    process = start("await asyncio.sleep(0)\nwhile True:\n    print_line('x' * 100)")
    assert process.stdout is not None
    assert process.stdout.read(5) == "xxxxx"
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), err) == (141, "")
