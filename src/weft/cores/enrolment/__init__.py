"""Who may come in: invitations of a root, machines that join by them, and the keys that the fleet knows.

It never sees a secret of CURVE: which key a connection has proved comes with each message. Start reading at `states.py`,
then `invitations.py`; what becomes of keys later is in `bindings.py` and `rotation.py`.
"""

from weft.cores.enrolment.core import Enrolment

__all__ = ["Enrolment"]
