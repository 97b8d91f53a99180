"""`python -m odradek.protocol`: the generated source of one message, or what the command takes."""

import pytest

from odradek.protocol.__main__ import main


def test_the_command_prints_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ProduceRequest", "9"]) == 0
    source = capsys.readouterr().out
    assert "def decode(buf, pos, size):" in source
    assert "def encode(message):" in source
    compile(source, "printed", "exec")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 2, "usage: python -m odradek.protocol NAME VERSION"),
        (["Produce", "9"], 2, "ProduceRequest"),
        (["ProduceRequest", "x"], 2, "usage"),
        (["ProduceRequest", "99"], 1, "declared for versions 3 to 13, not for 99"),
    ],
)
def test_the_command_says_what_it_takes(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, text: str
) -> None:
    assert main(arguments) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert text in output.err
