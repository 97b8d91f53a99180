"""What an operator watches: counts and times of requests, the page for Prometheus, the lag of the event loop.

Log lines are written where things happen.
"""
