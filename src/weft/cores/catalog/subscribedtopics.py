"""Which topics have subscribers, so that topics without one cost nothing."""

from weft.cores.catalog import limits
from weft.wire.catalog.messages import Subscription


class SubscribedTopics:
    """The subscriptions that can match topics of one prefix (`lcv/`, `logs/`)."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._topics: set[bytes] = set()
        self._lengths: dict[int, int] = {}
        """How many subscriptions have which length; a topic is looked up once per length."""
        self._is_all = False
        """There were too many to distinguish: every topic counts as subscribed to."""

    def note(self, subscription: Subscription) -> None:
        """A client subscribed, or the last subscriber of a topic has left."""
        topic = subscription.topic[: limits.SUBSCRIPTION_BYTES_MAX]
        if topic != subscription.topic and not subscription.is_on:
            return  # a longer one of the same beginning may still have subscribers
        if not (topic.startswith(self._prefix) or self._prefix.startswith(topic)):
            return
        if (topic in self._topics) == subscription.is_on:
            return
        if subscription.is_on:
            self._add(topic)
        else:
            self._topics.discard(topic)
            self._lengths[len(topic)] -= 1
            if not self._lengths[len(topic)]:
                del self._lengths[len(topic)]

    def _add(self, topic: bytes) -> None:
        if len(self._topics) >= limits.SUBSCRIBED_TOPICS_MAX:
            self._is_all = True
            return
        self._topics.add(topic)
        self._lengths[len(topic)] = self._lengths.get(len(topic), 0) + 1

    def __contains__(self, topic: bytes) -> bool:
        if self._is_all:
            return True
        return any(topic[:length] in self._topics for length in self._lengths if length <= len(topic))
