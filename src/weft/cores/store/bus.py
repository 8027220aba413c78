"""Sends to other nodes, packed in batches: to all on every link, or to one member of the mesh (LNK-003).

Messages of a turn leave in order at its end, after the records of the turn. A link that is down gets nothing: the ticks
in later messages show what was missed (LNK-002).
"""

from weft.base.effects import Send
from weft.cores.store import limits
from weft.cores.store.context import Context
from weft.wire.store import bus as codec
from weft.wire.store.messages import Info, Message, Ping, Publication, Update

MESH, MQTT = "mesh-call", "store-mqtt"
"""Channels: to one node's mesh socket by its endpoint; to a topic of the broker."""
TOPICS = {Update: "update", Info: "info", Ping: "wping"}


class Bus:
    """All links of one node."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.members: dict[str, str] = {}
        """Members of the mesh whose link is UP: name to endpoint."""
        self.has_broker = False
        """Whether the link to the broker is up."""
        self.knows_broker = False
        """Whether a link to a broker was ever up."""
        self.has_mesh = bool(context.settings.endpoint)
        """Whether other nodes can reach this one without a broker."""
        self._sums: set[str] = set()
        """Endpoints that read the checksum after a message."""
        self._queue: list[tuple[str, Message]] = []
        self._raw: list[tuple[str, bytes]] = []
        self._batch_max = 1 if context.chance.rarely("one change in a message") else limits.BATCH_MESSAGES

    @property
    def is_connected(self) -> bool:
        """Whether any node can be reached."""
        return self.has_broker or self.has_mesh

    def read_sums(self, endpoint: str, *, reads: bool) -> None:
        """A member states whether it reads the checksum."""
        self._sums &= set(self.members.values())
        (self._sums.add if reads else self._sums.discard)(endpoint)

    def say(self, message: Message, to: str = "") -> None:
        """Send to all nodes, or to one member.

        A member that the mesh does not reach gets it through the broker, as all others do.
        """
        self._queue.append((to, message))

    def say_raw(self, topic: str, payload: bytes) -> None:
        """Send to the broker only: messages of the moat dialect."""
        self._raw.append((topic, payload))

    def flush(self) -> None:
        """Give all messages to the links, in order.

        Consecutive ones of one topic for the same receivers share a payload.
        """
        queue, self._queue = self._queue, []
        raw, self._raw = self._raw, []
        if not self.members and not self.has_broker:
            self._count_dropped(len(queue) + len(raw))
            return  # ticks in later messages show what was missed (LNK-002)
        start = 0
        while start < len(queue):
            end = self._end_of_batch(queue, start)
            to, first = queue[start]
            self._send(to, TOPICS[type(first)], [codec.encode(message) for _, message in queue[start:end]])
            start = end
        for topic, payload in raw:
            if self.has_broker:
                self._context.send(MQTT, topic.encode(), Publication(topic, payload))
            else:
                self._count_dropped(1)

    def _end_of_batch(self, queue: list[tuple[str, Message]], start: int) -> int:
        to, first = queue[start]
        end = start + 1
        while end < len(queue) and queue[end][0] == to and type(queue[end][1]) is type(first):
            end += 1
        return end

    def _send(self, to: str, topic: str, payloads: list[bytes]) -> None:
        ears = [self.members[to]] if to in self.members else [] if to else list(self.members.values())
        if ears:
            for payload in self._joined(payloads):
                spoken = "ping" if topic == "wping" else topic
                self._context.effects += [
                    Send(MESH, ear.encode(), Publication(spoken, payload, has_sum=ear in self._sums)) for ear in ears
                ]
        if not ears and not self.has_broker:
            self._count_dropped(len(payloads))
        if self.has_broker and to not in self.members:
            joined = payloads if self._has_strangers else self._joined(payloads)
            self._context.effects += [Send(MQTT, topic.encode(), Publication(topic, payload)) for payload in joined]

    def _count_dropped(self, messages: int) -> None:
        """Messages for which no link is up (ADM-030)."""
        if messages:
            self._context.count("dropped", "no-link", messages)

    @property
    def _has_strangers(self) -> bool:
        """Whether real MoaT-KV servers may listen; they do not know batches."""
        return "moat" in self._context.settings.dialects

    def _joined(self, payloads: list[bytes]) -> list[bytes]:
        """As few payloads as the limits of a batch allow."""
        joined: list[bytes] = []
        part: list[bytes] = []
        size = 0
        for payload in payloads:
            if part and (len(part) >= self._batch_max or size + len(payload) > limits.BATCH_BYTES):
                joined.append(b"".join(part))
                part, size = [], 0
            part.append(payload)
            size += len(payload)
        return [*joined, b"".join(part)] if part else joined
