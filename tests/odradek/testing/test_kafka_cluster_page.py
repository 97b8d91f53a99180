"""The examples of docs/testing.md run as they stand there, and so does the README's."""

import re
from pathlib import Path
from typing import Final

from tests.odradek.testing.pytest_project import ROOT, run

PAGE: Final = ROOT / "docs" / "testing.md"
README: Final = ROOT / "README.md"
EXAMPLE: Final = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_example_of_the_page_passes(tmp_path: Path) -> None:
    readme = README.read_text().partition("\n## Test with it\n")[2].partition("\n## ")[0]
    examples = EXAMPLE.findall(readme) + EXAMPLE.findall(PAGE.read_text())
    assert len(examples) >= 6
    for number, example in enumerate(examples):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    ended = run(tmp_path, "-q")
    assert ended.code == 0, ended.text
    tests = sum(len(re.findall(r"^\s*(?:async )?def test_", example, re.MULTILINE)) for example in examples)
    assert f"{tests} passed" in ended.text, ended.text
