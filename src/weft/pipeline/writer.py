"""The identity of a committer: the app ids under which tables remember batches and leases (LAK-031, PIP-023)."""

from typing import NamedTuple

from weft.pipeline.tables import Table


class Writer(NamedTuple):
    """The identity of a committer: a job, its checkpoint, its lease."""

    job: str
    checkpoint: str
    """Id of the checkpoint; a new checkpoint starts its own series of batches."""
    epoch: int
    """Epoch of the lease."""

    def app(self, table: Table) -> str:
        """The app id under which a table keeps the last batch of this job."""
        return f"weft/{self.job}/{self.checkpoint}/{table.full_name}"

    @property
    def lease_app(self) -> str:
        return f"weft.lease/{self.job}"
