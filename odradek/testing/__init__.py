"""What programs test themselves with. So far the simulator of whole clusters, `odradek.testing.sim`.

Nothing of the broker or the clients imports it.
"""
