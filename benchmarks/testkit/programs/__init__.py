"""What an empty project runs that has installed the wheel. Each module is complete, imports nothing of the benchmarks,
and is copied into that project's directory (`benchmarks.testkit.installed`)."""
