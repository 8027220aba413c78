"""Admission to the fabric: a root's invitations, machines that join with them, and the keys that the fleet knows.

It never sees a secret CURVE key: the key that a connection has proved comes with each message. Start with `states.py`,
then `invitations.py`; later changes of keys are in `bindings.py` and `rotation.py`.
"""
