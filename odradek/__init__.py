"""Odradek: a Kafka-compatible broker in asyncio Python, with a client and PySpark jobs.

This package is the front door: the command line and the public names. The work is done in the packages beside it, whose
names are common words, so a `broker`, `client` or `protocol` of somebody else that comes earlier on the import path is
told here, before it causes an error that nobody understands.
"""

import importlib.util
from pathlib import Path

__version__: str

OUR_PACKAGES = ("broker", "client", "protocol")


def refuse_hidden_packages(home: Path, names: tuple[str, ...] = OUR_PACKAGES) -> None:
    """Raises ImportError, with both paths, when one of our packages is not the one that lies in `home`."""
    for name in names:
        ours = home / name
        found = find_package(name)
        if found is None:
            raise ImportError(f"Odradek's package `{name}` is missing: it should lie at {ours}; install odradek again.")
        if found.resolve() != ours.resolve():
            raise ImportError(f"Another `{name}` at {found} hides Odradek's own at {ours}: rename or remove it.")


def find_package(name: str) -> Path | None:
    """Where `import name` would find, or has found, its directory or its file."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin or "<unknown>")


refuse_hidden_packages(Path(__file__).resolve().parent.parent)


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("odradek")
    raise AttributeError(f"module 'odradek' has no attribute {name!r}")
