"""The unit files that systemd runs Weft by: one for each node, one for the lake (OPS-002). Pure text."""

from typing import Final, NamedTuple

STATE: Final = "/var/lib/weft"
"""Of all units of a machine. systemd makes it, gives it to the user of the units, and keeps it from everybody else."""
HARDENED: Final = """\
DynamicUser=yes
User=weft
StateDirectory=weft
StateDirectoryMode=0700
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateDevices=yes
ProtectClock=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
UMask=0077
"""
"""Processes of others stay visible: they are measured."""
MINE: Final = """\
NoNewPrivileges=yes
UMask=0077
"""
TEXT: Final = """\
# Made by weft service install; weft service remove {name} takes it away.
[Unit]
Description={what}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=20

[Service]
Type=exec
WorkingDirectory={state}
ExecStart={start}
{credentials}Restart=always
RestartSec=2
RestartPreventExitStatus=2 4 76 77 78
KillMode=mixed
TimeoutStopSec=60
LimitNOFILE=65536
SyslogIdentifier=weft-{name}
LogRateLimitIntervalSec=30
LogRateLimitBurst=2000
{memory}{hardened}
[Install]
WantedBy={target}
"""


class Service(NamedTuple):
    """One unit: a node of a file, or the driver of a lake."""

    name: str
    what: str
    words: tuple[str, ...]
    """Of `weft`, behind which stand those of the files."""
    files: tuple[tuple[str, str], ...] = ()
    """Options, and the file that each names: (``, `/etc/weft/root.toml`)."""
    memory: str = ""
    """More than that, and systemd ends it: `512M`."""

    @property
    def unit(self) -> str:
        """The name of its unit file."""
        return f"weft-{self.name}.service"


def unit_of(service: Service, python: str, *, state: str = STATE, is_mine: bool = False) -> str:
    """The text of its unit file. `is_mine`: it belongs to a user, and runs as that user without root.

    A file of settings may hold secrets, and the user of the unit exists only while it runs: so systemd hands it the files.
    """
    words = [quoted(python), "-m", "weft.cli.main", *map(quoted, service.words)]
    credentials = ""
    for number, (option, path) in enumerate(service.files):
        words += [option] if option else []
        words.append(quoted(path) if is_mine else f"%d/{number}.toml")
        credentials += "" if is_mine else f"LoadCredential={number}.toml:{path}\n"
    return TEXT.format(
        name=service.name,
        what=service.what,
        state=state.replace("%", "%%"),
        start=" ".join(words),
        credentials=credentials,
        memory=f"MemoryMax={service.memory}\n" if service.memory else "",
        hardened=MINE if is_mine else HARDENED,
        target="default.target" if is_mine else "multi-user.target",
    )


def quoted(word: str) -> str:
    """A word as systemd reads it back.

    >>> quoted("/opt/weft/bin/python"), quoted("my 100%")
    ('/opt/weft/bin/python', '"my 100%%"')
    """
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if any(one in word for one in " \t'\"\\") else plain
