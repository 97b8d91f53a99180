"""Planted secrets are found in every form and place in which they are looked for, and nothing else is."""

import base64
from pathlib import Path

import pytest

from tests.planted_secrets import PlantedSecrets


@pytest.fixture
def planted() -> PlantedSecrets:
    return PlantedSecrets()


def test_a_secret_is_found_in_its_forms(planted: PlantedSecrets) -> None:
    secret = planted.plant("key")
    assert planted.plant("key") == secret != planted.plant("other")
    assert planted.found_in(f"password={secret};") == ["key"]
    assert planted.found_in(secret.encode().hex()) == ["key"]
    for before in ("", "a", "ab", "abc", "user\0"):
        assert planted.found_in(base64.b64encode(f"{before}{secret} and more".encode())) == ["key"]
    assert planted.found_in("planted-key-") == []
    with pytest.raises(AssertionError, match="secrets stand in a log"):
        planted.refuse_in(secret, "a log")
    planted.refuse_in("nothing", "a log")


def test_files_are_looked_through(planted: PlantedSecrets, tmp_path: Path) -> None:
    secret = planted.plant("key")
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "file").write_text(secret)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"\xff\0")
    assert planted.refuse_in_files(tmp_path, but=[tmp_path / "allowed"]) == 1
    with pytest.raises(AssertionError, match="secrets stand in"):
        planted.refuse_in_files(tmp_path)
    (tmp_path / "allowed" / "file").unlink()
    (tmp_path / "below" / f"name of {secret}").touch()
    with pytest.raises(AssertionError, match="secrets stand in the name of"):
        planted.refuse_in_files(tmp_path)


def test_looking_for_nothing_is_a_mistake(planted: PlantedSecrets) -> None:
    with pytest.raises(AssertionError, match="nothing was planted"):
        planted.refuse_in("x", "a log")
