"""What importing `broker` costs in CPU time, over the C libraries that it needs, each time in a fresh process.

The libraries are imported first, with what they import themselves (uvloop brings asyncio), and are stated apart. Then
comes what `odradek serve` imports before it runs a broker.
"""

import subprocess
import sys

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import REPOSITORY

LIBRARIES = ("uvloop", "crc32c", "cramjam", "murmurhash2")
BROKER = ("odradek.broker.launch.serve_command", "odradek.broker.launch.run_broker")
PROCESSES_PER_RUN = 4
BAR = Bar("≤", 60.0)
SCRIPT = """
import importlib, time
began = time.process_time()
for name in {libraries}:
    importlib.import_module(name)
between = time.process_time()
for name in {broker}:
    importlib.import_module(name)
print(1000 * (between - began), 1000 * (time.process_time() - between))
"""


def measure_import(bench: Bench) -> Outcome:
    """Raises CalledProcessError."""
    import_times()  # whatever has to be compiled or read from the device is, now
    times = [import_times() for _ in range(PROCESSES_PER_RUN * bench.plan.runs)]
    libraries, broker = (Summary(tuple(each)) for each in zip(*times, strict=True))
    outcome = Outcome()
    outcome.add(
        Statement("importing `broker`, over its C libraries", "ms", broker, None, BAR, 1),
        Statement(f"importing {', '.join(LIBRARIES)}", "ms", libraries, None, None, 1),
    )
    return outcome


def import_times() -> tuple[float, float]:
    """Milliseconds for the libraries, and for what comes after them."""
    script = SCRIPT.format(libraries=LIBRARIES, broker=BROKER)
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    libraries, broker = map(float, done.stdout.split())
    return libraries, broker
