"""Secrets that a test plants, and looks for in everything that was written: logs, standard output, files, answers.

    planted = PlantedSecrets()
    config.write_text(f"metadata.etcd.password={planted.plant('etcd')}\\n")
    …
    planted.refuse_in(broker.output, "the log")
    planted.refuse_in_files(tmp_path, but=[config])

Each is a text that occurs nowhere else. It is looked for as it is and in the forms that a program would write it in
without meaning to show it: base64, hexadecimal, escaped for URLs.
"""

import base64
import secrets
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import quote

__all__ = ["PlantedSecrets"]


class PlantedSecrets:
    """What was planted, by what it is."""

    def __init__(self) -> None:
        self._planted: dict[str, str] = {}

    def plant(self, what: str) -> str:
        """A secret for this, always the same one."""
        return self._planted.setdefault(what, f"planted-{what.replace(' ', '-')}-{secrets.token_hex(8)}")

    def found_in(self, text: str | bytes) -> list[str]:
        """What of it the text shows."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        return [what for what, secret in self._planted.items() if any(form in data for form in _forms(secret))]

    def refuse_in(self, text: str | bytes, where: str) -> None:
        """Fails the test if the text shows any."""
        assert self._planted, "nothing was planted, so nothing can be found"
        assert self.found_in(text) == [], f"secrets stand in {where}"

    def refuse_in_files(self, *directories: Path, but: Collection[Path] = ()) -> int:
        """Fails the test if a file below the directories shows any, in its content or its name. `but`: those that are
        to have them, or directories of such. How many files were looked at."""
        count = 0
        for directory in directories:
            for path in _files_below(directory):
                if not any(path == allowed or allowed in path.parents for allowed in but):
                    self.refuse_in(path.name, f"the name of {path}")
                    self.refuse_in(path.read_bytes(), str(path))
                    count += 1
        return count


def _files_below(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path


def _forms(secret: str) -> set[bytes]:
    data = secret.encode()
    # In base64 what stands before the secret decides which of three forms it has; the first and last signs depend on
    # neighbours, and are left out.
    encoded = {base64.b64encode(bytes(shift) + data)[4 if shift else 0 : -4].rstrip(b"=") for shift in range(3)}
    return {data, data.hex().encode(), quote(secret, safe="").encode(), *encoded}
