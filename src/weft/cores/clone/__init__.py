"""The configuration for programs of the Clone pattern: serves its clients, and takes values over from its servers.

It owns no value: the configuration core does. Start with `states.py`, then `serving.py`.
"""
