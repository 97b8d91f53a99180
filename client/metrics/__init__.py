"""What the clients count and measure, and adapters that pass it on."""
