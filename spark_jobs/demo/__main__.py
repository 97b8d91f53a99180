"""`python -m odradek.spark_jobs.demo`, which is `make demo`. Exits with 0 if and only if nothing differed."""

import logging
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click
from kafka.errors import KafkaError
from rich.console import Console
from rich.markup import escape

from odradek.spark_jobs.demo.broker_process import BrokerCommand, odradek_command
from odradek.spark_jobs.demo.pipeline import Demo, run_demo
from odradek.spark_jobs.demo.steps import DemoFailed
from odradek.spark_jobs.session import CONNECTOR

GO_ON = """
[bold]How to go on[/bold]
A broker that stays:         {python} -m odradek serve --listen 127.0.0.1:9092 --data-dir ./odradek-data
Or three, in one process:    {python} -m odradek cluster run --brokers 3 --data-dir ./odradek-cluster
Write with kafka-python:     KafkaProducer(bootstrap_servers="127.0.0.1:9092").send("greetings", b"hello")
Read it (without a group):   KafkaConsumer("greetings", bootstrap_servers="127.0.0.1:9092", group_id=None,
                                           auto_offset_reset="earliest")
The same jobs against it:    {python} -m odradek.spark_jobs.flights load
                             {python} -m odradek.spark_jobs.flights delays --checkpoint ./flight-checkpoint
                             {python} -m odradek.spark_jobs.flights report
Spark of your own:           spark.jars.packages={connector}
                             spark.readStream.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:9092")…
docs/spark.md explains the jobs."""


@click.command()
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), default="demo-output", show_default=True)
def main(output: Path) -> None:
    """Real flights through kafka-python, SIGKILL and Spark, with everything compared."""
    sys.exit(show(output, odradek_command))


def show(output: Path, broker_command: BrokerCommand) -> int:
    """Runs the demo in a fresh temporary directory, which stays if and only if it failed; returns the exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    console = Console(highlight=False)
    output.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="odradek-demo-"))
    _log_clients_to(directory / "kafka-python.log")
    picture = (output / "flight-delays.png").resolve()
    failed = True
    try:
        run_demo(Demo(directory, picture, broker_command), console)
        failed = False
    except (DemoFailed, KafkaError) as failure:
        console.print("\n[bold red]The demo failed.[/bold red]", escape(str(failure)), soft_wrap=True)
        return 1
    except (KeyboardInterrupt, SystemExit):
        failed = False
        raise
    finally:
        if failed:
            console.print(f"Logs, data and checkpoint are kept in {directory}", soft_wrap=True)
        else:
            shutil.rmtree(directory)
    console.print(f"\n[bold green]Everything is equal.[/bold green] The year as a picture: {picture}", soft_wrap=True)
    console.print(GO_ON.format(python=_shown(sys.executable), connector=CONNECTOR), soft_wrap=True)
    return 0


def _log_clients_to(path: Path) -> None:
    """What kafka-python has to say about brokers that are killed is no news for the terminal."""
    logger = logging.getLogger("kafka")
    logger.addHandler(logging.FileHandler(path, encoding="utf-8", delay=True))
    logger.propagate = False


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    """Makes a signal end the demo through its `with` blocks, which take the child processes along."""
    raise SystemExit(128 + number)


def _shown(executable: str) -> str:
    """The interpreter as a person would type it here."""
    path = Path(executable)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else executable


if __name__ == "__main__":
    main()
