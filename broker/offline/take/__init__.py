"""`odradek cluster take`: a broker of `odradek serve` becomes the first one of `odradek cluster run`, and back."""
