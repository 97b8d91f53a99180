"""How a module of this installation is run in another process of the same interpreter.

    subprocess.Popen([*own_program("odradek.cli"), "serve", "--memory"])

The interpreter runs isolated (`-I`): it reads no `PYTHON…` variable, and neither the working directory nor the
directory of a script can put a module of its own in the place of one of ours or of the standard library's. The package
`odradek` is taken from where this process has it (own_main.py). Its dependencies are found as the interpreter finds
them, then, behind all of that, in the directories that this process has besides (`pip install --user`, `PYTHONPATH`).
"""

import os
import sys
from pathlib import Path


def own_program(module: str) -> list[str]:
    """The command line that calls `main` of `module`, a dotted name; what is added to it are the module's arguments.

    Raises OSError where the interpreter cannot be started again: it is part of another program, or unknown.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        raise OSError("this program holds its Python interpreter in itself, and cannot start it for another process")
    main = Path(__file__).absolute().with_name("own_main.py")
    return [sys.executable, "-I", str(main), module, os.pathsep.join(_other_directories())]


def _other_directories() -> list[str]:
    """The directories in which this process finds modules, without the working directory."""
    working_directory = os.path.realpath(os.curdir)
    return [path for path in sys.path if os.path.isabs(path) and os.path.realpath(path) != working_directory]
