"""`odradek secure` and `odradek users add --data-dir`: what a secure broker and its clients need, made in one go, and a
look at what a listener offers.

    command.py -> initialisation.py    init: plan.py, texts.py (pure); certificates, new_directory, first_contents
               -> probes.py            check: over connection.py; findings.py (pure), config_findings.py

It stands above broker and client, since it writes into the broker's store and speaks to listeners as clients do.
`cryptography` is an extra (`odradek[security]`), imported by `certificates.py` alone, and that only by `init`.
"""
