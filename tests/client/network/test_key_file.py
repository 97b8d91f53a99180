"""The file of a key: what it holds, who may read it, and that it is gone afterwards, after an error too."""

import stat
from pathlib import Path

import pytest

from odradek.client.network.key_file import key_file


def test_it_holds_the_texts_is_private_and_is_gone_afterwards() -> None:
    with key_file("key", "certificates") as name:
        path = Path(name)
        assert path.read_text() == "key\ncertificates"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


def test_it_is_gone_after_an_error() -> None:
    path = Path()
    with pytest.raises(LookupError), key_file("key") as name:
        path = Path(name)
        raise LookupError
    assert path.name
    assert not path.exists()
