"""The numbers of the enrolment core, each with unit and reason."""

from typing import Final

from weft.base.now import SECOND

MINUTE_NS: Final = 60 * SECOND
FOR_NS: Final = 15 * MINUTE_NS  # long enough to walk to the other machine
FOR_MAX_NS: Final = 30 * 24 * 60 * MINUTE_NS  # longer, and nobody remembers who has the token
USES_MAX: Final = 10_000  # a whole fleet by one token
INVITATIONS_MAX: Final = 256  # that are kept, ended ones too; the oldest ended one goes first
WRONG_MAX: Final = 5  # wrong proofs: whoever has a token does not mistake its secret (SEC-022)
JOINS_PER_SECOND: Final = 10  # a proof costs 10 us, and a binding one write of the configuration (SEC-023)
WRONG_PER_MINUTE: Final = 20  # of all invitations together; 128 bits are not guessed at that pace (SEC-023)
WRONG_PER_ADDRESS: Final = 5  # of one address, so that one stranger does not keep the others waiting (SEC-053)
GRACE_NS: Final = 30 * SECOND  # how long the door stays open for those whose WELCOME was lost
UNTIL_S: Final = 90 * 24 * 3_600  # how long a part of the fleet that hears nothing believes in a key (SEC-025)
RENEW_S: Final = UNTIL_S // 2  # what has less than this left is written anew
LOOK_NS: Final = 3_600 * SECOND  # between two looks for bindings to renew
RETRY_NS: Final = 5 * SECOND  # after a write of the configuration that was refused
SETTLE_NS: Final = 3 * SECOND  # until those who follow this node have its next key, too
RETELL_NS: Final = 60 * SECOND  # a root that only acts in the stead of another writes nothing: it is said again
OFFER_NS: Final = 5 * SECOND  # between two next keys of one node: each is one write of the configuration
WELCOME_KEYS_MAX: Final = 64  # the root, and those that may become the root: the configuration tells the rest
PENDING_MAX: Final = 64  # joins whose binding is being written
GLOB_MAX: Final = 255  # characters

assert GRACE_NS < FOR_NS < FOR_MAX_NS
assert WRONG_PER_ADDRESS < WRONG_PER_MINUTE
assert RENEW_S * 10**9 > 10 * LOOK_NS, "a binding must not end between two looks"
