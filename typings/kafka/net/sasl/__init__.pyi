# kafka-python 3.0.12, as far as our tests use it.
