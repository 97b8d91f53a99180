"""What every measurement works with: the plan, both servers, contests that are run in turn, results on disk.

What loads the servers is `load`; what is measured stands a module each in `benchmarks` itself.
"""
