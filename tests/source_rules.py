"""What `test_source.py` looks for: each rule takes the text of a module and tells what is wrong with it, by line.

Names are resolved through the module's own imports, so `import time as t; t.time()` and `from time import time` are
seen alike. `METHODS` are refused whatever they are called on: `loop.create_task`, `self._loop.run_in_executor`.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache

LINKED = ("broker", "client", "protocol", "spark_jobs")
"""The folders that odradek/ has links to, so that a module in them is `odradek.broker.…`."""
# Time, chance and tasks come from odradek/runtime/environment.py and odradek/runtime/tasks.py, so that a simulator can
# replace them. (`from threading import get_ident` asks in which thread one is, and starts none.)
AIR = re.compile(
    r"(time|uuid|random|secrets)(\..*)?"
    r"|os\.(urandom|getrandom)"
    r"|datetime\.(datetime\.(now|utcnow|today)|date\.today)"
    r"|threading(\.(?!get_ident$).*)?|multiprocessing(\..*)?|concurrent\.futures(\..*)?"
    r"|asyncio\.(create_task|ensure_future|TaskGroup|wait|as_completed|to_thread)"
)
METHODS = frozenset({"create_task", "ensure_future", "run_in_executor"})
# Files are opened, written, synced and renamed by broker/disk/file_disk.py and its parts alone.
FILES = re.compile(
    r"open|io\.open"
    r"|os\.(open|fdopen|read|write|writev|pread|preadv|pwrite|pwritev|sendfile|fsync|fdatasync|sync|truncate|ftruncate"
    r"|posix_fallocate|rename|renames|replace|remove|unlink|mkdir|makedirs|rmdir|removedirs|listdir|scandir|link|symlink)"
    r"|(shutil|tempfile|mmap|fcntl)(\..*)?"
)
REQUIREMENT = re.compile(r"([a-z0-9-]+)==([\w.]+)( ; [^;]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


@cache
def parsed(source: str) -> ast.Module:
    """Several rules look at each file, and parsing it takes longest."""
    return ast.parse(source)


def forbidden_uses(source: str, names: re.Pattern[str], methods: frozenset[str] = frozenset()) -> list[str]:
    """Uses (and imports) of what `names` matches in full, and calls of `methods` on anything."""
    tree = parsed(source)
    imported = imported_names(tree)
    bound = bound_names(tree)
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names if names.fullmatch(alias.name)]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            origins = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(node.lineno, origin) for origin in origins if names.fullmatch(origin)]
        elif isinstance(node, ast.Attribute):
            origin = dotted_name(node, imported)
            if (origin is not None and names.fullmatch(origin)) or node.attr in methods:
                found.append((node.lineno, origin or f"….{node.attr}"))
        elif isinstance(node, ast.Name) and node.id not in {*imported, *bound} and names.fullmatch(node.id):
            found.append((node.lineno, node.id))
    return [f"{line}: {name}" for line, name in sorted(set(found))]


def imported_names(tree: ast.Module) -> dict[str, str]:
    """The names that the module's imports bind, with what they stand for."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def bound_names(tree: ast.Module) -> set[str]:
    """The names of parameters and variables: what is handed in as `random` is not the module."""
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return parameters | {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def dotted_name(node: ast.expr, imported: dict[str, str]) -> str | None:
    """`aio.wait` as `asyncio.wait`, when `aio` is an imported name; None for anything else."""
    if isinstance(node, ast.Name):
        return imported.get(node.id)
    if isinstance(node, ast.Attribute):
        base = dotted_name(node.value, imported)
        return None if base is None else f"{base}.{node.attr}"
    return None


def imported_modules(source: str) -> Iterator[str]:
    """Every module that the source may import: `a.b` and, for `from a.b import c`, `a.b.c` too."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def runs_by_itself(source: str) -> bool:
    """Whether the module is a command: it has the `if __name__ == "__main__"` at its top level."""
    return any(
        isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)
        for node in parsed(source).body
    )


def unpinned_lines(requirements: str) -> list[str]:
    """Lines that are neither a comment, nor a version pinned to one number, nor a hash. An index address is none."""
    lines = [line for line in requirements.splitlines() if line and not line.startswith("#")]
    return [line for line in lines if not REQUIREMENT.fullmatch(line) and not HASH.fullmatch(line)]
