"""Publications in the simulator: lost until subscribed, in order, with holes at a limit, gone with their connection."""

import pytest

from tests.sim.test_links import CABLE, CUT, Ear
from weft.base.now import MILLISECOND, SECOND
from weft.sim.links import Streams
from weft.sim.sockets import Plug, Router
from weft.sim.world import World

PARENT = "10.0.0.1:27502"
SUB_AT = "10.0.0.2:27500"


class Scene:
    """A publishing parent `p`, children `c` and `d`, and whole cables."""

    def __init__(self, seed: str = "1") -> None:
        self.world = World()
        self.changes: list[tuple[str, str]] = []
        self.streams = Streams(self.world, seed, lambda child, parent: self.changes.append((child, parent)))
        self.ears = {name: Ear(name) for name in "pcd"}
        for here in "pcd":
            for there in "pcd":
                self.streams.set_path(here, there, CABLE)
        self.router: Router = self.streams.bind(self.ears["p"], PARENT, "publish")

    def subscribe(self, name: str, *topics: bytes, tag: bytes = b"t") -> "Scene":
        plug = Plug(PARENT, name.encode() + tag, "updates", tag, topics)
        self.streams.connect(self.ears[name], plug)
        return self

    def wait(self, seconds: float) -> "Scene":
        self.world.run(self.world.at + round(seconds * SECOND))
        return self

    def publish(self, *frames: bytes) -> None:
        for frame in frames:
            self.streams.publish(self.router, [frame])

    def heard(self, name: str) -> list[bytes]:
        return [frame for _, _, frame in self.ears[name].heard]


def numbers(first: int, last: int) -> list[bytes]:
    return [b"/k/%d" % number for number in range(first, last + 1)]


@pytest.mark.proves("SIM-020")
def test_z1_what_is_published_right_after_a_connect_is_lost() -> None:
    scene = Scene().subscribe("c", b"/")
    scene.publish(*numbers(1, 50))
    scene.wait(0.004)
    scene.publish(*numbers(51, 60))  # connected, but the subscription is still on its way
    scene.wait(1)
    assert scene.heard("c") == []
    scene.publish(*numbers(61, 70))
    scene.wait(1)
    assert scene.heard("c") == numbers(61, 70)


@pytest.mark.proves("SIM-020")
def test_publications_come_in_order_once_and_by_topic_and_beats_always() -> None:
    scene = Scene().subscribe("c", b"/CONFIG/web/", tag=b"t1").subscribe("d", tag=b"t2").wait(1)
    for number in range(300):
        scene.publish(b"/CONFIG/web/%d" % number, b"/CONFIG/db/%d" % number)
        scene.wait(0.0004)
    scene.publish(b"HUGZ")
    scene.wait(1)
    assert scene.heard("c") == [*(b"/CONFIG/web/%d" % number for number in range(300)), b"HUGZ"]
    assert scene.ears["d"].heard == [("updates", b"t2", b"HUGZ")]
    assert {("updates", b"t1")} == {heard[:2] for heard in scene.ears["c"].heard}
    assert scene.changes == []


@pytest.mark.proves("SIM-020")
@pytest.mark.proves("FLD-041", part="a full PUB drops, and says nothing")
def test_z2_a_slow_child_gets_holes_and_the_others_do_not() -> None:
    scene = Scene()
    scene.ears["c"].queue_messages = 10
    scene.subscribe("c", b"/").subscribe("d", b"/").wait(1)
    scene.ears["c"].reads = False
    scene.publish(*numbers(1, 50))
    scene.wait(1)
    for flow, size in scene.ears["c"].unread:
        flow.read(size)
    scene.ears["c"].reads = True
    scene.publish(*numbers(51, 55))
    scene.wait(1)
    assert scene.heard("c") == numbers(1, 10) + numbers(51, 55)
    assert scene.heard("d") == numbers(1, 55)
    assert scene.streams.dropped == 40


@pytest.mark.proves("SIM-020")
def test_a_short_cut_delays_and_a_death_loses_until_the_subscription_is_back() -> None:
    scene = Scene().subscribe("c", b"/").wait(1)
    scene.streams.set_path("p", "c", CUT)
    scene.publish(*numbers(1, 5))
    scene.wait(1)
    assert scene.heard("c") == []
    scene.streams.set_path("p", "c", CABLE)
    scene.wait(3)
    assert scene.heard("c") == numbers(1, 5)
    scene.publish(b"/k/6")
    scene.streams.give_up("c", 10 * SECOND, "updates")
    scene.publish(*numbers(7, 9))
    scene.wait(1)
    scene.publish(*numbers(10, 12))  # also into the connection that nobody knows to be dead
    scene.wait(20)
    assert scene.heard("c") == numbers(1, 5) + numbers(10, 12)
    assert 1 == len(scene.router.peers)


def test_a_parent_that_starts_again_is_subscribed_to_again_by_itself() -> None:
    scene = Scene().subscribe("c", b"/").wait(1)
    scene.streams.unbind(scene.router, is_loud=True)
    scene.wait(1)
    scene.router = scene.streams.bind(scene.ears["p"], PARENT, "publish")
    scene.publish(b"/k/1")
    scene.wait(1)
    scene.publish(b"/k/2")
    scene.wait(1)
    assert scene.heard("c") == [b"/k/2"]


def test_another_connect_replaces_the_subscription_and_its_tag() -> None:
    scene = Scene().subscribe("c", b"/CONFIG/", tag=b"t1").wait(1).subscribe("c", b"/TOPO/", tag=b"t2").wait(1)
    scene.publish(b"/CONFIG/a", b"/TOPO/a")
    scene.wait(1)
    assert scene.ears["c"].heard == [("updates", b"t2", b"/TOPO/a")]


def test_a_child_that_is_gone_without_a_word_costs_its_parent_nothing_for_long() -> None:
    scene = Scene().subscribe("c", b"/").wait(1)
    scene.streams.leave("c", is_loud=False)
    scene.wait(1)
    assert 1 == len(scene.router.peers)
    scene.publish(b"/k/1")
    scene.wait(1)
    assert {} == scene.router.peers


@pytest.mark.proves("SIM-020")
def test_announcements_reach_everyone_whose_subscription_has_come() -> None:
    scene = Scene()
    for name, address in (("c", SUB_AT), ("d", "10.0.0.3:27500")):
        scene.streams.bind(scene.ears[name], address, "announced")
        for _ in range(2):  # twice the same changes nothing
            scene.streams.connect(scene.ears["p"], Plug(address, b"p" + name.encode(), "announce"))
    scene.streams.announce("p", "announce", [b"/MARCO", b"1"])
    scene.wait(1)
    scene.streams.announce("p", "announce", [b"/MARCO", b"2"])
    scene.wait(1)
    for name in "cd":
        assert scene.ears[name].heard == [("announced", b"", b"/MARCO")]
    assert scene.streams.unheard == 2
    scene.streams.disconnect("p", "announce")
    scene.streams.announce("p", "announce", [b"/MARCO", b"3"])
    scene.wait(1)
    assert 1 == len(scene.ears["c"].heard)


def test_connections_of_several_channels_between_two_machines_live_and_die_apart() -> None:
    scene = Scene().subscribe("c", b"/")
    child, parent = scene.ears["c"], scene.ears["p"]
    scene.streams.bind(parent, "10.0.0.1:27503", "serve")
    scene.streams.bind(parent, "10.0.0.1:27501", "control")
    scene.streams.bind(parent, "10.0.0.1:27507")
    scene.streams.connect(child, Plug("10.0.0.1:27503", b"1", "ask", b"t9"))
    scene.streams.connect(child, Plug("10.0.0.1:27501", b"2", "call", b"10.0.0.1:27500"))
    scene.streams.connect(child, Plug("10.0.0.1:27507", b"3"))
    scene.wait(1)
    scene.streams.send_up("c", [b"a"], "ask")
    scene.streams.send_up("c", [b"b"], "call", "10.0.0.1:27501")
    scene.streams.send_up("c", [b"c"])
    scene.wait(1)
    assert sorted(parent.heard) == [("control", b"2", b"b"), ("down", b"3", b"c"), ("serve", b"1", b"a")]
    assert scene.changes == [("c", "p")]
    scene.streams.give_up("c", MILLISECOND, "ask")
    scene.streams.disconnect("c", "call")
    assert scene.streams.works("c", "p")
    assert not scene.streams.is_connected("c", "call", "10.0.0.1:27501")
    scene.wait(1)
    scene.publish(b"/k/1")
    scene.streams.send_up("c", [b"d"], "ask")
    scene.wait(1)
    assert (b"/k/1", ("serve", b"1", b"d")) == (scene.heard("c")[-1], parent.heard[-1])


def test_a_router_answers_by_channel_with_the_tag_of_the_connection() -> None:
    scene = Scene()
    router = scene.streams.bind(scene.ears["p"], "10.0.0.1:27503", "serve")
    scene.streams.connect(scene.ears["c"], Plug("10.0.0.1:27503", b"1", "ask", b"t9"))
    scene.wait(1)
    assert scene.streams.send_down(router, b"1", [b"x"]) is True
    assert scene.streams.send_down(router, b"2", [b"x"]) is False
    scene.wait(1)
    assert scene.ears["c"].heard == [("ask", b"t9", b"x")]
