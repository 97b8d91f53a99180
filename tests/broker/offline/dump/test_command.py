"""`odradek dump`: what is printed, the exit codes, and that nothing in the directory is touched.

It is run as a process where its end matters, and else within this one.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.broker.offline.dump.command import dump
from processes.child_process import REPOSITORY
from tests.broker.offline.dump.laid_down import sample_disk
from tests.signals import heeding_ctrl_c

FIRST = f"orders-0/{0:020d}"
SECOND = f"orders-0/{8:020d}"
LAST = f"orders-0/{15:020d}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The sample in real files."""
    disk = sample_disk()
    for directory in ("", "orders-0", "others-1"):
        (tmp_path / "data" / directory).mkdir()
        for name in disk.sizes(f"data/{directory}"):
            (tmp_path / "data" / directory / name).write_bytes(disk.read_whole(f"data/{directory}/{name}"))
    return tmp_path / "data"


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        dump([str(each) for each in arguments], prog_name="odradek dump")
    assert isinstance(end.value.code, int)
    return end.value.code


def start(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        heeding_ctrl_c(sys.executable, "-m", "odradek", "dump", *map(str, arguments)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )


def damage(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


# -- printing ---------------------------------------------------------------------------------------------------------


def test_a_partition_is_printed_file_by_file(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(data / "orders-0") == 0
    lines = capfd.readouterr().out.splitlines()
    headings = [line.removeprefix(f"{data}/") for line in lines if not line.startswith(" ")]
    assert headings[:5] == [
        "orders-0/partition.metadata",
        "orders-0/leader-epoch-checkpoint",
        f"{FIRST}.log",
        f"{FIRST}.index",
        f"{FIRST}.timeindex",
    ]
    assert len(headings) == len(list((data / "orders-0").iterdir()))
    assert len([line for line in lines if line.startswith("  batch base_offset=")]) == 13
    assert not any(line.lstrip().startswith(("record ", "marker ")) for line in lines)


def test_records_stand_below_their_batches(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--records", data / f"{FIRST}.log", data / f"{SECOND}.log") == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == str(data / f"{FIRST}.log")
    assert lines[2] == '    record offset=0 timestamp_ms=1700000000000 key=null value="one" headers=["name": "value", "none": null]'  # fmt: skip  # noqa: E501
    assert len([line for line in lines if line.startswith("    record ")]) == 8 + 4
    assert len([line for line in lines if line.startswith("    marker ")]) == 3


def test_it_ends_behind_so_many_records(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for count, last in ((1, 'value="one"'), (4, 'value="four"'), (9, 'value="nine"'), (11, "marker offset=10")):
        assert run("--records", "--max-records", count, data) == 0
        lines = capfd.readouterr().out.splitlines()
        assert len([line for line in lines if line.startswith("    ")]) == count
        assert last in lines[-1] or (last.startswith("marker") and lines[-1].startswith(f"    {last}"))
    assert run("--records", "--max-records", 99, data) == 0
    assert capfd.readouterr().out.splitlines()[-1] == f"{data}/others-1/{0:020d}.timeindex"


def test_json_is_an_object_a_line(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--records", data) == 0
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert {each["kind"] for each in found} >= {"batch", "record", "marker", "index_entry", "producer", "offset"}
    assert sum(each["kind"] == "record" for each in found) == 15
    assert all(each["file"].startswith(str(data)) for each in found)
    assert found[0] == {
        "file": f"{data}/meta.properties",
        "kind": "meta_properties",
        "cluster_id": "b2RyYWRlay10ZXN0cy0wMQ",
        "node_id": 0,
        "directory_id": "AAAAAAAAAAAAAAAAAAAAAQ",
    }


def test_damage_is_printed_and_told_in_the_end(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    damage(data / f"{FIRST}.log", 100)
    damage(data / f"{SECOND}.snapshot", 20)
    assert run(data) == 1
    printed = capfd.readouterr()
    assert printed.err == "Error: damage was found in 2 place(s); --verify says more\n"
    assert "is_crc_valid=false" in printed.out
    assert '  damage reason="it does not have the checksum that it carries"' in printed.out
    assert f"{data}/others-1/{0:020d}.timeindex" in printed.out, "all else is printed"


# -- verifying --------------------------------------------------------------------------------------------------------


def test_what_is_sound_gets_a_line_a_partition(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--verify", data) == 0
    printed = capfd.readouterr()
    assert printed.out.splitlines() == [
        f"{data}/.kafka_cleanshutdown: note: the broker stopped cleanly",
        f"{data}/orders-0: ok, 3 segments, offsets 0 to 17, 13 batches, 18 records, 7 index entries, "
        "7 time index entries, 2 aborted transactions, 3 snapshots, 3 leader epochs",
        f"{data}/others-1: ok, 1 segment, nothing before offset 0, 1 snapshot",
    ]
    assert printed.err == ""


def test_a_file_gets_a_line(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--verify", data / f"{FIRST}.log", data / f"{FIRST}.index", data / "meta.properties") == 0
    assert capfd.readouterr().out.splitlines() == [
        f"{data}/{FIRST}.log: ok, 5 batches",
        f"{data}/{FIRST}.index: ok, 3 entries",
        f"{data}/meta.properties: ok",
    ]


def test_the_first_inconsistency_ends_it(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    damage(data / f"{FIRST}.log", 100)
    damage(data / f"{LAST}.log", 100)
    assert run("--verify", data) == 1
    printed = capfd.readouterr()
    assert printed.err.startswith(f"Error: {data}/{FIRST}.log, position 0, offset 0: the batch carries the checksum 0x")
    assert len(printed.err.splitlines()) == 1
    assert printed.out == f"{data}/.kafka_cleanshutdown: note: the broker stopped cleanly\n"


def test_findings_as_json(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--verify", "--json", data) == 0
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [each["kind"] for each in found] == ["note", "partition", "partition"]
    assert found[1] == {
        "file": f"{data}/orders-0", "kind": "partition", "topic_id": "AAECAwQFBgcICQoLDA0ODw",
        "first_offset": 0, "end_offset": 18, "segments": 3, "batches": 13, "records": 18, "gaps": 0,
        "offset_entries": 7, "time_entries": 7, "aborted_transactions": 2, "snapshots": 3, "leader_epochs": 3,
    }  # fmt: skip
    assert run("--verify", "--json", data / f"{FIRST}.log") == 0
    assert json.loads(capfd.readouterr().out) == {
        "file": f"{data}/{FIRST}.log", "kind": "file", "batches": 5, "entries": 0,
    }  # fmt: skip
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n3\n3 0\n5 8\n6 99\n")
    assert run("--verify", "--json", data / "orders-0") == 1
    printed = capfd.readouterr()
    assert json.loads(printed.out) == {
        "file": f"{data}/orders-0/leader-epoch-checkpoint",
        "kind": "inconsistency",
        "position": None,
        "line": 5,
        "offset": None,
        "text": "epoch 6 begins at offset 99, and the log ends at 18",
    }
    assert printed.err.startswith("Error: ")


# -- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Missing argument 'PATH…'"),
        (("{data}/missing",), "missing' does not exist"),
        (("{data}/..",), "is neither a data directory nor a partition's: there is no meta.properties and no *.log"),
        (("{data}", "{data}/readme"), "{data}/readme is not a file of a log or of a data directory, by its name"),
        (("--verify", "{data}/.."), "is neither a data directory nor a partition's"),
        (("--max-records", "3", "{data}"), "--max-records counts what --records prints: give both"),
        (("--records", "--max-records", "0", "{data}"), "0 is not in the range x>=1"),
        (("--verify", "--records", "{data}"), "--verify looks at every record and prints none: leave --records out"),
    ],
)
def test_a_wrong_command_line_is_told(
    arguments: tuple[str, ...], told: str, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (data / "readme").write_text("")
    assert run(*(each.replace("{data}", str(data)) for each in arguments)) == 2
    printed = capfd.readouterr()
    assert told.replace("{data}", str(data)) in printed.err
    assert printed.out == "", "nothing is printed before all paths have been looked at"


def test_what_cannot_be_read_is_an_error(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (data / f"{FIRST}.index").unlink()
    (data / f"{FIRST}.index").mkdir()
    assert run("--verify", data) == 1
    assert "Is a directory" in capfd.readouterr().err


def test_who_reads_the_output_may_go_away(data: Path) -> None:
    log = data / f"{LAST}.log"
    log.write_bytes(log.read_bytes()[:130] * 5000)
    process = start("--records", log)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == f"{log}\n"
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_ctrl_c_ends_it(data: Path) -> None:
    log = data / f"{LAST}.log"
    log.write_bytes(log.read_bytes()[:130] * 20_000)
    process = start("--records", log)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, "")


def test_nothing_is_written_or_locked(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def state() -> dict[str, tuple[int, int, int]]:
        found = [data, *sorted(data.rglob("*"))]
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size, path.stat().st_ino) for path in found}

    for path in data.rglob("*"):
        path.chmod(0o444 if path.is_file() else 0o755)
    before = state()
    assert run("--records", data) == run("--verify", data) == 0
    assert state() == before
    capfd.readouterr()
