"""What a large cluster costs, for docs/scale.md. Only the catalogue imports it."""
