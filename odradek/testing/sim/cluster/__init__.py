"""What happens in a world: brokers that run and fall, who writes, reads and operates, which faults come by chance, and
what is looked at meanwhile.

It decides nothing about right and wrong: what it sees goes into the history, which `checking` judges.
"""
