"""What broker and clients need of the world around them, as seams that a simulator can replace: clocks, chance, threads
and tasks (`environment`, `tasks`), TLS over a transport, Java's properties syntax, and a number that coroutines wait
for (`progress`).

It stands above `protocol` and below `client` and `broker`, and knows nothing of Kafka's semantics.
"""
