"""What the catalog denies, as its protocol words it."""

from weft.cores.kit import refusals


class Refusal(refusals.Refusal):
    """What is denied: exactly one code of CAT-080, and which service and fields it is about; nothing has changed."""

    def __init__(self, code: str, why: str, *, service: str = "", fields: tuple[str, ...] = ()) -> None:
        super().__init__(code, why)
        self.service, self.fields = service, fields
