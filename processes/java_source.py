"""Java programs of this repository, which are one source file each, with Apache Kafka's classes.

They are compiled when they are started, by Janino, which pyspark bundles: so a JRE is enough, as for everything else.
Janino knows no lambdas, and of generics only what is written out.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyspark

from processes.apache_kafka import kafka_classpath, logging_options
from processes.jars import JarsUnresolved, java

COMPILER: Final = "org.codehaus.janino.SimpleCompiler"
JARS: Final = ("janino", "commons-compiler")
REPOSITORY: Final = Path(__file__).parent.parent


def java_source_command(source: str, *args: str, jvm_options: Sequence[str], log_level: str) -> list[str]:
    """The command that runs `main` of the class that `source` is named for, a path in this repository.

    Raises JarsUnresolved.
    """
    path = REPOSITORY / source
    classpath = os.pathsep.join((*map(str, compiler_jars()), kafka_classpath()))
    return [java(), *jvm_options, *logging_options(log_level), "-cp", classpath, COMPILER, str(path), path.stem, *args]


def compiler_jars() -> list[Path]:
    """Raises JarsUnresolved."""
    found: list[Path] = []
    for name in JARS:
        bundled = sorted(Path(pyspark.__path__[0], "jars").glob(f"{name}-*.jar"))
        if not bundled:
            raise JarsUnresolved(f"pyspark bundles no {name}: is the extra `spark` installed?")
        found.append(bundled[-1])
    return found
