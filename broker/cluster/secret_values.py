"""Which keys and values of the metadata store are secrets, in one place, and how a backup goes without them. Pure.

Secret are all keys under `SECRET_PREFIXES`, and of what is set for brokers at run time the options that are passwords,
as well as those of names that nobody here knows. What is left out is named: a restore has to say who has no credentials
any more, and which options have no values.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from odradek.broker.cluster.keys import KeyKind, decode_configs, encode_configs, parse_key
from odradek.broker.config.static_options import is_sensitive

SECRET_PREFIXES: Final = ("/scram/",)
"""Credentials of users, and the secret from which answers for users are made that there are not."""
USERS_PREFIX: Final = "/scram/users/"
"""Behind it a mechanism and, after a slash, the name of a user, which may hold others."""


def is_secret_key(key: str) -> bool:
    """Whether all that stands under the key is secret."""
    return key.startswith(SECRET_PREFIXES)


def without_secrets(values: Mapping[str, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """What is no secret, and what is left out: keys, and options as `KEY NAME`. Raises MalformedMetadata."""
    kept: dict[str, bytes] = {}
    left_out: list[str] = []
    for key, value in values.items():
        if is_secret_key(key):
            left_out.append(key)
        elif parse_key(key)[0] is KeyKind.BROKER_CONFIG:
            configs = decode_configs(value, key)
            open_ones = {name: text for name, text in configs.items() if not is_sensitive(name)}
            left_out += [f"{key} {name}" for name in configs if name not in open_ones]
            if len(open_ones) == len(configs):
                kept[key] = value
            elif open_ones:
                kept[key] = encode_configs(open_ones)
        else:
            kept[key] = value
    return kept, tuple(left_out)


def told_of(left_out: Sequence[str]) -> list[str]:
    """What is to be done where a backup without secrets was restored, in sentences."""
    users = [_user(each) for each in left_out if each.startswith(USERS_PREFIX)]
    options = [_shown(each) for each in left_out if not is_secret_key(each)]
    sentences: list[str] = []
    if users:
        sentences.append(
            f"the backup has no secrets, so these have no credentials, and cannot log in: {', '.join(users)}; give "
            "them others with `odradek users add`"
        )
    if options:
        sentences.append(
            f"the backup has no secrets, so these options have no values: {', '.join(options)}; set them again with "
            "`odradek configs set`"
        )
    return sentences


def _user(key: str) -> str:
    mechanism, _, user = key.removeprefix(USERS_PREFIX).partition("/")
    return f"{_shown(user)} ({_shown(mechanism)})"


def _shown(text: str) -> str:
    """Clients choose names, and a terminal obeys what is not printable."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
