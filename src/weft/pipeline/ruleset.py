"""Criteria for rows besides their own content: rules of the lake's owner, and who may send (PIP-034)."""

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule of the user's, `[[lake.rule]]`."""

    name: str
    when: str
    """A Spark SQL expression over the columns of bronze; true: the rule applies."""
    then: str = "quarantine"
    """`quarantine`, or `flag`: the sample stays and gets the flag `rule:<name>`."""
    stream: str = "samples"
    """The stream whose rows it applies to."""


class Rules(NamedTuple):
    """The criteria for rows besides their own content."""

    user: tuple[Rule, ...] = ()
    known_nodes: tuple[str, ...] | None = None
    """Origins that may send; None: all may."""

    def of(self, stream: str, then: str) -> tuple[Rule, ...]:
        """The user's rules for one stream, of one kind, in their order."""
        return tuple(rule for rule in self.user if (rule.stream, rule.then) == (stream, then))
