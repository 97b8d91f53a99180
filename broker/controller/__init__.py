"""What the controller decides: who leads which partition. One broker alone is its own controller."""
