"""What decides over rows beside their own content: rules of the lake's owner, and who may send (PIP-034)."""

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule of the user's, `[[lake.rule]]`."""

    name: str
    when: str
    """A Spark SQL expression over the columns of bronze; true: the rule applies."""
    then: str = "quarantine"
    """`quarantine`, or `flag`: the sample stays, with `rule:<name>` among its flags."""
    stream: str = "samples"
    """Whose rows it speaks of."""


class Rules(NamedTuple):
    """What decides over rows beside their own content."""

    user: tuple[Rule, ...] = ()
    known_nodes: tuple[str, ...] | None = None
    """Origins that may send, if only known ones may."""

    def of(self, stream: str, then: str) -> tuple[Rule, ...]:
        """The user's rules over one stream, of one kind, in their order."""
        return tuple(rule for rule in self.user if (rule.stream, rule.then) == (stream, then))
