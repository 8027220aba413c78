"""Documents of derby, written as XML, for whoever reads elements."""

from dataclasses import dataclass, field
from xml.etree import ElementTree as ET


@dataclass
class Made:
    tag: str
    attributes: dict[str, str]
    text: str = ""
    children: list["Made"] = field(default_factory=list)


def tree(text: str | bytes) -> Made:
    """The elements of a document."""
    return _made(ET.fromstring(text))


def _made(element: ET.Element) -> Made:
    return Made(element.tag, dict(element.attrib), element.text or "", [_made(child) for child in element])


def bout(first: str = "", second: str = "", home: str = "", away: str = "", **attributes: str) -> Made:
    """A bout with what stands in its two periods and on its two rosters."""
    told = "".join(f' {name}="{value}"' for name, value in ({"ruleset": "MAR2014"} | attributes).items())
    return tree(
        f'<bout{told}><team id="home" name="Ravens">{home}</team><team id="away" name="Owls">{away}</team>'
        f'<team id="official"/><period number="1">{first}</period><period number="2">{second}</period></bout>'
    )


def jam(number: int, begin: float | None = None, duration: float | None = None, inside: str = "") -> str:
    """A jam with what happened in it."""
    told = "" if begin is None else f' timestamp="{begin}"'
    told += "" if duration is None else f' duration="{duration}"'
    return f'<jam number="{number}"{told}>{inside}</jam>'
