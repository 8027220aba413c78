"""The app ids under which a table's log has the last batch of a job and its lease (LAK-031, PIP-023)."""

from typing import NamedTuple

from weft.pipeline.tables import Table


class Writer(NamedTuple):
    """Who commits: a job, under its checkpoint and its lease."""

    job: str
    checkpoint: str
    """Id of the checkpoint; a new checkpoint starts its own series of batches."""
    epoch: int
    """Epoch of the lease."""

    def app(self, table: Table) -> str:
        """The app id whose version in a table's log is the last batch of this job."""
        return f"weft/{self.job}/{self.checkpoint}/{table.full_name}"

    @property
    def lease_app(self) -> str:
        """The app id whose version is the epoch of the lease."""
        return f"weft.lease/{self.job}"
