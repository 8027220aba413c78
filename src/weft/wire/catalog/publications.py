"""Frames of the XPUB of events, and of the publishers that the broker listens to (CAT-040, LVC-002).

publication  = topic *body
subscription = %x01 topic  /  %x00 topic                    ; as an XPUB hears it
"""

from collections.abc import Sequence
from typing import Final

from weft.base.errors import PeerError
from weft.wire.catalog.messages import Publication, Subscription, Taken

FRAMES_MAX: Final = 64  # of a message that is kept


def decode(frames: Sequence[bytes]) -> Subscription:
    r"""What an XPUB receives; PeerError `malformed`, since a subscriber can send other things too.

    >>> decode([b"\x01tick"])
    Subscription(is_on=True, topic=b'tick')
    """
    if len(frames) != 1 or frames[0][:1] not in (b"\0", b"\1"):
        raise PeerError("malformed", "no subscription")
    return Subscription(frames[0][0] == 1, frames[0][1:])


def encode(publication: Publication) -> list[bytes]:
    """The frames of a publication."""
    return [publication.topic, *publication.body]


def encode_subscription(subscription: Subscription) -> list[bytes]:
    """The frames of a subscription, as an XPUB receives it."""
    return [(b"\1" if subscription.is_on else b"\0") + subscription.topic]


def decode_publication(frames: Sequence[bytes]) -> Publication:
    """What a subscriber of the events receives; PeerError `malformed`."""
    _check(frames)
    return Publication(frames[0], tuple(frames[1:]))


def decode_taken(frames: Sequence[bytes]) -> Taken:
    """What a publisher sent, unchanged; PeerError `malformed`."""
    _check(frames)
    return Taken(tuple(frames))


def _check(frames: Sequence[bytes]) -> None:
    if not 0 < len(frames) <= FRAMES_MAX:
        raise PeerError("malformed", f"{len(frames)} frames")
