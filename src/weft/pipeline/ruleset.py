"""What decides about rows besides the built-in checks: the user's rules, and which nodes may send (PIP-034)."""

from typing import NamedTuple


class Rule(NamedTuple):
    """One rule of the user, `[[lake.rule]]`."""

    name: str
    when: str
    """A Spark SQL expression over the columns of bronze; true: the rule applies."""
    then: str = "quarantine"
    """`quarantine`, or `flag`: the sample stays and gets the flag `rule:<name>`."""
    stream: str = "samples"
    """The stream whose rows it applies to."""


class Rules(NamedTuple):
    """The user's rules, and which nodes may send."""

    user: tuple[Rule, ...] = ()
    known_nodes: tuple[str, ...] | None = None
    """Origins that may send; None: all may."""

    def of(self, stream: str, then: str) -> tuple[Rule, ...]:
        """The user's rules for one stream that have this consequence, in their order."""
        return tuple(rule for rule in self.user if (rule.stream, rule.then) == (stream, then))
