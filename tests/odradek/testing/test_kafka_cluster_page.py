"""The examples of docs/testing.md run as they stand there, and so does the README's."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = ROOT / "docs" / "testing.md"
README: Final = ROOT / "README.md"
EXAMPLE: Final = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

OUR_PLUGIN: Final = ("-p", "no:odradek", "-p", "odradek.testing.pytest_plugin")
"""The same whether the environment was made before it had the entry point, or since."""


def test_every_example_of_the_page_passes(tmp_path: Path) -> None:
    readme = README.read_text().partition("\n## Test with it\n")[2].partition("\n## ")[0]
    examples = EXAMPLE.findall(readme) + EXAMPLE.findall(PAGE.read_text())
    assert len(examples) >= 6
    for number, example in enumerate(examples):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        *OUR_PLUGIN,
        str(tmp_path),
    ]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60, env=_environment(tmp_path)
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    tests = sum(len(re.findall(r"^\s*(?:async )?def test_", example, re.MULTILINE)) for example in examples)
    assert f"{tests} passed" in ended.stdout, ended.stdout


def _environment(home: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": str(ROOT)}
