"""The numbers of the enrolment core, each with unit and reason."""

from typing import Final

from weft.base.now import SECOND

MINUTE_NS: Final = 60 * SECOND
FOR_NS: Final = 15 * MINUTE_NS  # long enough to walk to the other machine
FOR_MAX_NS: Final = 30 * 24 * 60 * MINUTE_NS  # with a longer time, it is forgotten who has the token
USES_MAX: Final = 10_000  # a whole fleet with one token
INVITATIONS_MAX: Final = 256  # kept, ended ones included; the oldest ended one is dropped first
WRONG_MAX: Final = 5  # wrong proofs: the owner of a token makes none (SEC-022)
JOINS_PER_SECOND: Final = 10  # a proof costs 10 us, and a binding one write of the configuration (SEC-023)
WRONG_PER_MINUTE: Final = 20  # of all invitations together; 128 bits cannot be guessed at this rate (SEC-023)
WRONG_PER_ADDRESS: Final = 5  # of one address, so that one stranger does not block the others (SEC-053)
GRACE_NS: Final = 30 * SECOND  # the door stays open this long for machines whose WELCOME was lost
UNTIL_S: Final = 90 * 24 * 3_600  # a part of the fleet that is cut off trusts a key for this long (SEC-025)
RENEW_S: Final = UNTIL_S // 2  # a binding with less than this left is renewed
LOOK_NS: Final = 3_600 * SECOND  # between two checks for bindings to renew
RETRY_NS: Final = 5 * SECOND  # after a write of the configuration that was refused
SETTLE_NS: Final = 3 * SECOND  # until the nodes that follow this one have its next key too
RETELL_NS: Final = 60 * SECOND  # an acting root writes nothing, so the message is repeated
OFFER_NS: Final = 5 * SECOND  # between two next keys of one node: each is one write of the configuration
WELCOME_KEYS_MAX: Final = 64  # the root and the nodes that may become root; the configuration brings the rest
PENDING_MAX: Final = 64  # joins whose binding is being written
GLOB_MAX: Final = 255  # characters

assert GRACE_NS < FOR_NS < FOR_MAX_NS
assert WRONG_PER_ADDRESS < WRONG_PER_MINUTE
assert RENEW_S * 10**9 > 10 * LOOK_NS, "a binding must not end between two looks"
