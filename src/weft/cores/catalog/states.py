"""What the broker believes of an instance, and of a connection (CAT-020; specs/02, 2.4)."""

from enum import Enum


class State(Enum):
    NONE = "not registered, or removed"
    ACTIVE = "heard within one and a half of its intervals"
    SUSPECT = "silent for longer: asked whether it is there"
    INACTIVE = "silent for its whole liveness, or left; shown to nobody who looks for it"


class Link(Enum):
    NEW = "a DEALER that has not registered"
    BOUND = "the connection of an instance"
    CLOSED = "told to disconnect, or gone: nothing more is said to it"
    IGNORED = "said too much that is no message"
