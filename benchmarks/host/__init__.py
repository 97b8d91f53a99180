"""The machine under measurement: what it is, how busy it is, what its device does, and what each process has used."""
