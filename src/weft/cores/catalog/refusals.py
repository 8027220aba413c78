"""Refusals of the catalog, as its protocol words them."""

from weft.cores.kit import refusals


class Refusal(refusals.Refusal):
    """A refused request: one code of CAT-080, and the service and fields it is about; nothing has changed."""

    def __init__(self, code: str, why: str, *, service: str = "", fields: tuple[str, ...] = ()) -> None:
        super().__init__(code, why)
        self.service, self.fields = service, fields
