"""What `odradek users add --data-dir DIR` does: a user for a cluster that does not run.

Imported at the door, so what it works with is imported when it runs.
"""

import os
from typing import Final

from odradek.client.commands.failures import CommandFailed

__all__ = ["add_offline"]

PROPERTIES: Final = "meta.properties"
METADATA: Final = "metadata.log"
FOR_OWNER: Final = 0o700


async def add_offline(data_dir: str, user: str, mechanisms: list[str], password: str, iterations: int) -> str:
    """Stores the user in `metadata.log` of the directory, and says so. Raises CommandFailed."""
    from odradek.broker.disk.file_disk import FileDisk
    from odradek.broker.offline.adopt.claim import DirectoryRefused
    from odradek.client.admin.scram_users import is_text
    from odradek.secure.first_contents import write_user

    if not is_text(password):
        raise CommandFailed(f"The password of {user} holds surrogates, which are no text. Nothing was stored.")
    try:
        directory = _prepared(data_dir)
        await write_user(FileDisk(), f"embedded:{directory}", user, mechanisms, password, iterations)
    except (DirectoryRefused, ValueError) as error:
        raise CommandFailed(f"{error}. Nothing was stored.") from None
    except OSError as error:
        raise CommandFailed(f"{data_dir}: {error.strerror or error}. Nothing was stored.") from error
    return f"{user} has a password for {' and '.join(mechanisms)} in {directory}, from the broker's next start on"


def _prepared(data_dir: str) -> str:
    """The directory, made where there is none, for its owner alone. Raises CommandFailed, OSError."""
    directory = os.path.abspath(data_dir)
    if os.path.exists(os.path.join(directory, PROPERTIES)) and not os.path.exists(os.path.join(directory, METADATA)):
        raise CommandFailed(
            f"{directory} is of a cluster whose metadata is elsewhere: give the directory that has {METADATA}, or add "
            "the user through a broker."
        )
    os.makedirs(directory, FOR_OWNER, exist_ok=True)
    return directory
