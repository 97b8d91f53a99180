"""The test kit (`odradek.testing`) as a project has it that installed the wheel: how long starts, kills, resets and
tests take, and what memory it needs. What is measured runs in `programs`, copied into an empty project."""
