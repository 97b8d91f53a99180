"""What an interpreter runs first that own_program.py starts: finds `odradek` beside this file, and calls a module's
`main`.

    python -I …/odradek/runtime/own_main.py MODULE DIRECTORIES [ARGUMENT…]

DIRECTORIES, separated as in PATH, are searched last. Of what is imported nearly nothing is garbage, so the collector
rests meanwhile: it took a quarter of a broker's start.
"""

import gc
import importlib.util
import os
import sys


def run(module: str, directories: str) -> None:
    """Calls `main` of the module; `sys.argv` holds its arguments."""
    gc.disable()
    sys.path.extend(path for path in directories.split(os.pathsep) if path and path not in sys.path)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "odradek", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None, "the file is there"
    assert spec.loader is not None, "it is a package's"
    sys.modules["odradek"] = found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    main = importlib.import_module(module).main
    gc.freeze()
    gc.enable()
    main()


if __name__ == "__main__":
    _, module, directories, *arguments = sys.argv
    sys.argv[:] = [module, *arguments]
    run(module, directories)
