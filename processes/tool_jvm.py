"""Some of Kafka's command-line classes, in one JVM for all that a process runs of them, instead of a JVM for each.

    jvm = ToolJvm(classpath, options)
    jvm.run("org.apache.kafka.tools.DumpLogSegments", "--files", "…")     what it printed, or None

To start a JVM takes half a second of a processor, to dump a short log in one that runs a twentieth of that. None: it
did not go well, and a process of its own shows what that looks like to a user (`apache_kafka.run_tool`). py4j, through
which Spark's Python side talks, carries the calls.
"""

from collections.abc import Sequence
from threading import Lock
from typing import Any, Final

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError

ENTRIES: Final = {"org.apache.kafka.tools.DumpLogSegments": "main", "kafka.tools.StorageTool": "execute"}
"""The method of each class that can be run here: it returns, where others end the JVM. `execute` is told where to print
and returns the code that the process would end with."""


class ToolJvm:
    """A JVM that is started by the first `run`, and ends with this process. One tool runs at a time."""

    def __init__(self, classpath: str, java: str, options: Sequence[str]) -> None:
        self._classpath = classpath
        self._java = java
        self._options = tuple(options)
        self._gateway: JavaGateway | None = None
        self._lock = Lock()

    @property
    def pid(self) -> int:
        """Of the JVM that runs, or ran last."""
        return self._process.pid

    def run(self, main_class: str, *args: str) -> str | None:
        """All that it printed, errors too. None where it threw, or ended with another code than 0."""
        with self._lock:
            if self._gateway is None:
                self._gateway = self._start()
            try:
                return _run(self._gateway, main_class, args)
            except Py4JJavaError:  # thrown by the tool
                return None
            except Py4JError:  # the JVM is gone
                self._stop(self._gateway)
                return None

    def stop(self) -> None:
        """Ends the JVM. The next `run` starts another."""
        with self._lock:
            if self._gateway is not None:
                self._stop(self._gateway)

    def _start(self) -> JavaGateway:
        port, self._process = launch_gateway(
            classpath=self._classpath,
            javaopts=list(self._options),
            java_path=self._java,
            die_on_exit=True,
            return_proc=True,
        )
        # Without finalizers, which would ask for the JVM from wherever Python happens to collect garbage.
        return JavaGateway(gateway_parameters=GatewayParameters(port=port, enable_memory_management=False))

    def _stop(self, gateway: JavaGateway) -> None:
        self._gateway = None
        gateway.close()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()  # on which the JVM ends
        process.wait()
        process.stdout.close()  # only now: a thread of py4j's was reading it


def _run(gateway: JavaGateway, main_class: str, args: Sequence[str]) -> str | None:
    java: Any = gateway.jvm.java
    printed = java.io.ByteArrayOutputStream()
    stream = java.io.PrintStream(printed, True, "UTF-8")
    given = gateway.new_array(java.lang.String, len(args))
    for number, arg in enumerate(args):
        given[number] = arg
    tool: Any = gateway.jvm
    for name in main_class.split("."):
        tool = getattr(tool, name)
    outside = java.lang.System.out, java.lang.System.err
    java.lang.System.setOut(stream)
    java.lang.System.setErr(stream)
    try:
        code: int = tool.main(given) or 0 if ENTRIES[main_class] == "main" else tool.execute(given, stream)
        said: str = printed.toString("UTF-8")
        return said if code == 0 else None
    finally:
        java.lang.System.setOut(outside[0])
        java.lang.System.setErr(outside[1])
        for each in (printed, stream, given, *outside):
            gateway.detach(each)
