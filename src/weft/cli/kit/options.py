"""Kinds of options that every command writes alike."""

from typing import Annotated

from cyclopts import Parameter

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""A flag without a `--no-…` form."""
