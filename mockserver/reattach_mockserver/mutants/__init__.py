"""Servers that are wrong in one decision each, to try a client, the chaos kit or a compliance check. See README.md."""
