"""The asyncio side of Kafka's protocol: the seams to the outside world, and the clients built on them."""
