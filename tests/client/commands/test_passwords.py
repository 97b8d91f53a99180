"""Where a command takes a password from, and what it says of files that others may read."""

import io
import sys
from pathlib import Path

import click
import pytest

from odradek.client.commands.failures import USAGE, CommandFailed
from odradek.client.commands.passwords import password_of

SECRET = "pencil-5f0c"  # noqa: S105


@pytest.mark.parametrize(
    ("content", "password"),
    [
        (b"pencil\n", "pencil"),
        (b"pencil", "pencil"),
        (b"pencil\r\n", "pencil"),
        (b"pencil\nmore\n", "pencil"),
        (b"  pen cil\t\n", "  pen cil\t"),
        ("l\u2028f\x0b\n".encode(), "l\u2028f\x0b"),
    ],
)
def test_a_password_is_the_first_line_as_it_is(tmp_path: Path, content: bytes, password: str) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    path.chmod(0o600)
    assert password_of("alice", str(path)) == password


@pytest.mark.parametrize("content", [b"", b"\n", b"\npencil\n"])
def test_an_empty_first_line_is_no_password(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    with pytest.raises(CommandFailed, match="is empty") as caught:
        password_of("alice", str(path))
    assert caught.value.code == USAGE


def test_a_file_that_others_may_read_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    for mode, warns in ((0o644, True), (0o640, True), (0o600, False), (0o400, False)):
        path.chmod(mode)
        assert password_of("alice", str(path)) == SECRET
        said = capsys.readouterr().err
        assert (f"has mode {mode:04o}" in said) == bool(said) == warns
        assert SECRET not in said


def test_what_cannot_be_read_is_told_without_its_content(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="cannot be read"):
        password_of("alice", str(tmp_path / "none"))
    path = tmp_path / "password"
    path.write_bytes(SECRET.encode() + b"\xff\n")
    with pytest.raises(CommandFailed, match="is no text") as caught:
        password_of("alice", str(path))
    assert SECRET not in str(caught.value)


def test_a_person_is_asked_twice_and_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    asked: list[dict[str, object]] = []

    def prompt(text: str, **options: object) -> str:
        asked.append({"text": text, **options})
        return SECRET

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(click, "prompt", prompt)
    assert password_of("alice", None) == SECRET
    assert asked == [{"text": "Password of alice", "hide_input": True, "confirmation_prompt": True, "err": True}]


def test_standard_input_that_is_no_text_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\n"), encoding="utf-8"))
    with pytest.raises(CommandFailed, match="no text"):
        password_of("alice", "-")
