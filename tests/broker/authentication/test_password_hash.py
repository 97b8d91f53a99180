"""Hashes of passwords: what is written is read, what is no hash is refused without a word of it."""

import hashlib
import io
import sys

import pytest

from odradek.broker.authentication import password_hash
from odradek.broker.authentication.password_hash import Cost, fits, hashed, main, parse_hash, written

GOOD = "scrypt$ln=15,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$" + "A" * 43


def test_a_hash_comes_back_and_fits_its_password_alone() -> None:
    cost = Cost(14, 8, 1)
    made = hashed("pässword", b"0123456789abcdef", cost)
    assert made.digest == hashlib.scrypt("pässword".encode(), salt=made.salt, n=2**14, r=8, p=1, maxmem=2**26, dklen=32)
    assert parse_hash(written(made)) == made
    assert fits("pässword".encode(), made)
    assert not fits(b"password", made)
    assert "0123456789abcdef" not in repr(made)


def test_the_usual_cost_takes_32_mib() -> None:
    assert Cost().memory_bytes == 32 * 1024**2
    assert parse_hash(GOOD).cost == Cost()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not of the form"),
        ("geheim", "not of the form"),
        (GOOD.replace("scrypt", "bcrypt"), "not of the form"),
        (GOOD[:-1], "not of the form"),
        (GOOD + "A", "not of the form"),
        (GOOD.replace("ln=15", "ln=0"), "not of the form"),
        (GOOD.replace("c2FsdHNhbHRzYWx0c2FsdA", "c2Fs"), "not of the form"),
        (GOOD.replace("ln=15", "ln=13"), "ln is at least 14"),
        (GOOD.replace("ln=15", "ln=18"), "at most 134217728 bytes"),
        (GOOD.replace("p=1", "p=99"), "at most 134217728 bytes"),
        (GOOD.replace("c2FsdHNhbHRzYWx0c2FsdA", "c2FsdHNhbHRzYWx0c2Fsd"), "no base64"),
    ],
)
def test_what_is_no_hash(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        parse_hash(text)
    assert "geheim" not in str(caught.value)


def test_the_command_prints_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["password_hash", "billing"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\nmore\n"))
    main()
    user, _, text = capsys.readouterr().out.strip().partition(":")
    assert user == "billing"
    assert fits(b"secret", parse_hash(text))


@pytest.mark.parametrize(("arguments", "given"), [([], "x"), (["a:b"], "x"), ([""], "x"), (["billing"], "")])
def test_the_command_refuses(arguments: list[str], given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["password_hash", *arguments])
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    monkeypatch.setattr(password_hash, "hashed", None)
    with pytest.raises(SystemExit):
        main()
