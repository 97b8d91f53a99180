"""Stories: what goes wrong on purpose, in the order in which it does most harm, on one partition (`stage`)."""
