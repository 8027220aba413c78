"""Makes the text of systemd's unit files: one for each node, one for the driver of a lake (OPS-002)."""

from typing import Final, NamedTuple

STATE: Final = "/var/lib/weft"
"""The state directory of all units of a machine. systemd makes it; only the user of the units has access."""
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
"""Restrictions of a unit. Other users' processes stay visible, because the node measures them."""
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
    """Arguments of `weft`; those of `files` follow."""
    files: tuple[tuple[str, str], ...] = ()
    """Options, and the file that each names: (``, `/etc/weft/root.toml`)."""
    memory: str = ""
    """systemd restarts the service if it uses more memory: `512M`."""

    @property
    def unit(self) -> str:
        """The name of its unit file."""
        return f"weft-{self.name}.service"


def unit_of(service: Service, python: str, *, state: str = STATE, is_mine: bool = False) -> str:
    """The text of its unit file. `is_mine`: it belongs to a user, and runs as that user without root.

    systemd passes the files of settings as credentials: they may hold secrets, and the unit's user, who would have to own
    them, exists only while the unit runs.
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
