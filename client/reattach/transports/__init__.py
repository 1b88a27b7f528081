"""The network: one connection an attempt. Start with `base.py`, the seam."""
