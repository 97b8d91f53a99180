"""Where the brokers of a test's cluster run: in threads with a loop each, or all in the caller's loop.

A broker in a thread is as alone as one in a process: it can be killed in the middle of whatever it does, and paused.
"""
