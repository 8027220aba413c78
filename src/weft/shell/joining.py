"""How a machine joins: it sends JOIN to the port in its token, and gets WELCOME or a refusal (SEC-020, SEC-022)."""

from typing import Final

import zmq

from weft.base.errors import PeerError, UserError
from weft.shell.keys import Keys
from weft.wire.enrolment import About, Join, Refused, Welcome, decode_answer, encode_join, proof_of
from weft.wire.token import Token
from weft.wire.z85 import from_z85, to_z85

PATIENCE_MS: Final = 5_000  # for the answer of one endpoint
FRAME_BYTES_MAX: Final = 1 << 20
MENDS: Final = {
    "unknown-token": "weft invite at the root prints a token of this fabric",
    "expired": "weft invite at the root prints another one",
    "used": "weft invite at the root prints another one",
    "revoked": "weft invite at the root prints another one",
    "bad-proof": "copy the whole line that weft invite printed",
    "bad-name": "--name with another name",
    "name-taken": "--name with another name; or weft key revoke NAME at the root, if that machine is gone",
    "uuid-taken": "the keys that it joined with; or weft key revoke at the root, then another token",
    "busy": "the same again in a minute",
}
"""What to do about each refusal."""


def knock(token: Token, keys: Keys, node: bytes, about: About) -> Welcome:
    """Join with a token, at the first of its endpoints that answers.

    UserError with the code of the refusal, or `unavailable` if none answers.
    """
    client_key = from_z85(keys.public)
    assert client_key is not None, keys
    proof = proof_of(token.secret, token.ident, node, client_key, token.server_key)
    join = encode_join(Join(token.ident, node, proof, about))
    context = zmq.Context[zmq.Socket[bytes]]()
    try:
        for endpoint in token.endpoints:
            if (answer := _answer(context, endpoint, token, keys, join)) is not None:
                return _welcomed(answer)
    finally:
        context.term()
    text = f"nothing answers at {' or '.join(token.endpoints)}"
    mend = "weft invite at the root: it listens only as long as a token may be used; else look for a firewall"
    raise UserError("unavailable", text, mend)


def _answer(
    context: "zmq.Context[zmq.Socket[bytes]]", endpoint: str, token: Token, keys: Keys, join: list[bytes]
) -> Welcome | Refused | None:
    made = context.socket(zmq.DEALER)
    try:
        for option, value in {zmq.LINGER: 0, zmq.MAXMSGSIZE: FRAME_BYTES_MAX, zmq.IPV6: int("[" in endpoint)}.items():
            made.setsockopt(option, value)
        made.setsockopt(zmq.CURVE_SERVERKEY, to_z85(token.server_key).encode())
        made.setsockopt(zmq.CURVE_PUBLICKEY, keys.public.encode())
        made.setsockopt(zmq.CURVE_SECRETKEY, keys.secret.encode())
        made.connect(f"tcp://{endpoint}")
        made.send_multipart(join)
        return decode_answer(made.recv_multipart()) if made.poll(PATIENCE_MS) else None
    except (zmq.ZMQError, PeerError):
        return None
    finally:
        made.close()


def _welcomed(answer: Welcome | Refused) -> Welcome:
    if isinstance(answer, Refused):
        raise UserError(
            "refused",
            f"the root refused ({answer.code}): {answer.text}",
            MENDS.get(answer.code, "weft invite at the root"),
        )
    return answer
