"""Orders of people over http: from this machine's programs only, to the core that obeys, and back in JSON."""

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.shell.ports import free_port
from weft.base.endpoints import HTTP
from weft.base.errors import UserError, exit_code
from weft.cli import asking
from weft.cores.alerts import messages as alerts
from weft.cores.chains import messages as chains
from weft.cores.configuration import messages as configuration
from weft.cores.enrolment import messages as enrolment
from weft.cores.store import messages as store
from weft.cores.topology import messages as topology
from weft.shell import orders
from weft.shell.http import server
from weft.shell.http.gate import Gate
from weft.shell.http.messages import Request, Response, Route
from weft.shell.http.server import Server as Http
from weft.shell.orders import ORDER, ORDER_BYTES_MAX, Desk, canonical

Answer = Callable[[Any], Any]
ALL = ("configuration", "topology", "chains", "store", "enrolment", "alerts")
WRITTEN = configuration.Written(number=7, count=1)


class Office:
    """A desk whose cores answer as they are told, and note what they were asked."""

    def __init__(self, answer: Answer = lambda _: WRITTEN, cores: tuple[str, ...] = ALL) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._answer = answer
        self.desk = Desk(self._order, cores)

    def _order(self, core: str, order: Any) -> None:
        self.asked.append((core, order))
        answer = self._answer(order)
        if answer is not None:
            self.desk.reply(order.ticket, answer)

    def take(self, **said: Any) -> tuple[int, Any]:
        page = asyncio.run(self._take(json.dumps(said).encode()))
        return page.status, json.loads(page.body)

    async def _take(self, body: bytes) -> Response:
        return await self.desk.take(body)


WANTED: list[tuple[dict[str, Any], str, Any]] = [
    ({"order": "forget-alert", "id": "0011"}, "alerts", alerts.ForgetAlert(1, "0011")),
    (
        {"order": "set", "key": "/CONFIG/a", "value": ' {"b": 1, "a": "é"}', "if_number": 3, "who": "ann"},
        "configuration",
        configuration.WriteKeys(1, (configuration.Write("/CONFIG/a", '{"a":"é","b":1}'.encode(), None, 3),), "ann"),
    ),
    (
        {"order": "set", "key": "/CONFIG/a", "value": {"b": 1, "a": "é"}, "ttl_s": 2.5},
        "configuration",
        configuration.WriteKeys(1, (configuration.Write("/CONFIG/a", '{"a":"é","b":1}'.encode(), 2.5),)),
    ),
    (
        {"order": "delete", "key": "/CONFIG/a", "ack": "local"},
        "configuration",
        configuration.WriteKeys(1, (configuration.Write("/CONFIG/a", b""),), ack="local"),
    ),
    (
        {"order": "load", "pairs": {"/CONFIG/a": 1, "/CONFIG/b": ' "x" '}, "prefixes": ["/CONFIG/"]},
        "configuration",
        configuration.LoadTree(1, (("/CONFIG/a", b"1"), ("/CONFIG/b", b'"x"')), ("/CONFIG/",)),
    ),
    ({"order": "get", "key": "/CONFIG/a"}, "configuration", configuration.ListKeys(1, "/CONFIG/a", 1)),
    (
        {"order": "list", "subtree": "/TOPO/", "count": 5, "after": "/TOPO/a"},
        "configuration",
        configuration.ListKeys(1, "/TOPO/", 5, "/TOPO/a"),
    ),
    ({"order": "history", "subtree": "/CONFIG/"}, "configuration", configuration.ReadHistory(1, "/CONFIG/", 100)),
    (
        {"order": "rollback", "number": 9, "subtree": "/CONFIG/web/", "who": "ann"},
        "configuration",
        configuration.RollBack(1, 9, "/CONFIG/web/", "ann"),
    ),
    ({"order": "stop", "group": "web"}, "topology", topology.StopNodes(1, "web")),
    ({"order": "listen", "address": "10.0.0.1"}, "enrolment", enrolment.Listen(1, "10.0.0.1")),
    (
        {"order": "invite", "role": "collector", "uses": 3, "for_s": 1.5, "names": "pi*"},
        "enrolment",
        enrolment.Invite(1, "collector", 3, 1_500_000_000, "pi*"),
    ),
    ({"order": "invitations"}, "enrolment", enrolment.ShowInvitations(1)),
    ({"order": "withdraw", "ident": "a1"}, "enrolment", enrolment.Withdraw(1, "a1")),
    ({"order": "keys"}, "enrolment", enrolment.ShowKeys(1)),
    ({"order": "revoke-key", "node": "pi7"}, "enrolment", enrolment.RevokeKey(1, "pi7")),
    ({"order": "rotate-key", "node": "pi7"}, "enrolment", enrolment.RotateKey(1, "pi7")),
    ({"order": "reset-root"}, "topology", topology.ResetRoot(1)),
    ({"order": "chains"}, "chains", chains.ShowChains(1)),
    (
        {"order": "trace", "type": "app.a", "direction": "in", "count": 3, "span_ms": 900},
        "chains",
        chains.TraceChains(1, "app.a", "in", 3, 900),
    ),
    ({"order": "forget-reader", "reader": "screen"}, "chains", chains.ForgetReader(1, "screen")),
    ({"order": "store-found", "value": "a568656c6c6f"}, "store", store.Found(1, b"\xa5hello")),
    ({"order": "store-show", "what": "conflicts"}, "store", store.Show(1, "conflicts")),
    ({"order": "store-restore", "number": 7}, "store", store.RestoreLoser(1, 7)),
    ({"order": "store-drop-node", "node": "b"}, "store", store.DropNode(1, "b")),
    ({"order": "store-deleters", "nodes": ["a", "b"]}, "store", store.SetDeleters(1, ("a", "b"))),
    ({"order": "store-accept-tick"}, "store", store.AcceptTick(1)),
    (
        {"order": "store-copy", "records": ["gA=="], "is_first": True},
        "store",
        store.CopyFile(1, (b"\x80",), is_first=True, is_last=False),
    ),
    ({"order": "store-replay"}, "store", store.ReplayOrphans(1)),
]


@pytest.mark.parametrize("said, core, order", WANTED, ids=[said["order"] for said, _, _ in WANTED])
def test_every_order_reaches_the_core_that_obeys_it(said: dict[str, Any], core: str, order: Any) -> None:
    office = Office()
    assert (200, {"answer": "Written", "number": 7, "count": 1, "is_confirmed": True, "dead": []}) == office.take(
        **said
    )
    assert [(core, order)] == office.asked


def test_there_is_a_case_for_every_order() -> None:
    assert set(orders.ORDERS) == {said["order"] for said, _, _ in WANTED}


@pytest.mark.proves("CON-004", part="a change bears the name of the login, whatever the browser says")
@pytest.mark.parametrize(
    ("login", "who", "written"),
    [
        (None, "joe", "joe"),
        ("anna", "anna", "anna"),
        ("anna", "anna: too warm", "anna: too warm"),
        ("anna", "joe: too warm", "anna: joe: too warm"),
        ("anna", "annabel", "anna: annabel"),
        ("anna", "", "anna"),
    ],
)
def test_a_change_bears_the_name_of_the_login(login: str | None, who: str, written: str) -> None:
    office = Office()
    route = office.desk.route(lambda _: login)
    for name, fields in (("set", {"key": "/a", "value": "1"}), ("rollback", {"number": 3}), ("get", {"key": "/a"})):
        more = {"who": who} if name != "get" else {}
        asyncio.run(_handled(route, json.dumps({"order": name, **fields, **more}).encode()))
    assert [written, written] == [order.who for _, order in office.asked[:2]]
    assert configuration.ListKeys(3, "/a", 1) == office.asked[2][1]


async def _handled(route: Route, body: bytes) -> None:
    answer = route.handle(Request("POST", "/order", body=body))
    assert inspect.isawaitable(answer)
    response = await answer
    assert isinstance(response, Response)
    assert 200 == response.status


def test_answers_come_as_json_and_bytes_as_text_where_they_are_text() -> None:
    pairs = (("/a", 1, "é".encode()), ("/b", 2, b"\xff"))
    office = Office(lambda _: configuration.KeysListed(pairs, 2, is_current=True))
    status, answer = office.take(order="list")
    assert (200, [["/a", 1, "é"], ["/b", 2, {"b64": "/w=="}]]) == (status, answer["pairs"])


def test_plain_data_is_an_answer_too() -> None:
    """It ended the node that gave it."""
    office = Office(lambda _: {"chains": [{"type": "t", "who": b"\xff"}]})
    status, answer = office.take(order="chains")
    assert (200, {"answer": "ShowChains", "chains": [{"type": "t", "who": {"b64": "/w=="}}]}) == (status, answer)


def test_a_refused_order_says_why_and_whom_to_ask() -> None:
    refused = configuration.OrderRefused(12, "this node is not the root", "10.0.0.1:27500")
    status, answer = Office(lambda _: refused).take(order="set", key="/a", value="1")
    expected = {"answer": "OrderRefused", "code": 12, "text": "this node is not the root", "root": "10.0.0.1:27500"}
    assert (409, expected) == (status, {name: answer[name] for name in expected})


def test_what_the_store_refuses_is_a_conflict_with_its_code() -> None:
    status, answer = Office(lambda _: store.StoreRefused("exists", "founded")).take(order="store-found")
    assert (409, {"answer": "StoreRefused", "code": "exists", "text": "founded"}) == (status, answer)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"order":"store-found","value":"xyz"}',
        b"[]",
        b"\xff",
        b"{}",
        b'{"order":"fly"}',
        b'{"order":7}',
        b'{"order":"set","key":"/a"}',
        b'{"order":"set","key":"/a","value":{"a":1,"a":2}}',
        b'{"order":"set","key":"/a","value":"\xff"}',
        b'{"order":"set","key":"/a","value":"{"}',
        b'{"order":"set","key":"/a","value":""}',
        b'{"order":"set","key":"/a","value":"NaN"}',
        b'{"order":"set","key":"/a","value":"1e999"}',
        b'{"order":"set","key":"/a","value":"{\\"a\\":1,\\"a\\":2}"}',
        b'{"order":"set","key":"/a","value":"\\"\\\\ud800\\""}',
        b'{"order":"set","key":"/a","value":"1","hidden":2}',
        b'{"order":"set","key":"/a","value":"' + b"[" * 100_000 + b'"}',
        b"[" * 200_000,
        b'{"order":"set","key":"/a","value":"\\"' + b"x" * (1 << 20) + b'\\""}',
        b'{"order":"load","pairs":{"/a":"x"},"prefixes":[]}',
        b'{"order":"rollback","number":"9"}',
    ],
)
def test_what_is_not_understood_reaches_no_core(body: bytes) -> None:
    office = Office()
    page = asyncio.run(office._take(body))
    assert (400, "refused", []) == (page.status, json.loads(page.body)["answer"], office.asked)


def test_a_node_without_the_core_says_so() -> None:
    office = Office(cores=("topology",))
    assert (503, []) == (office.take(order="get", key="/a")[0], office.asked)


def test_who_gets_no_answer_is_told_so_and_a_late_answer_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "PATIENCE_S", 0.01)
    office = Office(lambda _: None)
    assert 504 == office.take(order="stop")[0]
    office.desk.reply(1, WRITTEN)
    assert {} == office.desk._waiting


def test_orders_that_wait_are_bounded_and_each_gets_its_own_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "WAITING_MAX", 2)
    office = Office(lambda _: None)

    async def main() -> list[Any]:
        waiting = [asyncio.create_task(office._take(b'{"order":"stop"}')) for _ in range(3)]
        while len(office.asked) < 2:  # noqa: ASYNC110  # tasks that have begun tell no event
            await asyncio.sleep(0)
        office.desk.reply(2, topology.NodesStopped(("b",), ()))
        office.desk.reply(1, topology.NodesStopped(("a",), ()))
        pages = await asyncio.gather(*waiting)
        return [json.loads(page.body).get("stopped", page.status) for page in pages]

    assert [["a"], ["b"], 503] == asyncio.run(main())


def test_canonical_text_is_the_same_for_the_same_value() -> None:
    assert canonical('{"b":[1, 2.50,"\\u00e9"], "a":null}') == '{"a":null,"b":[1,2.5,"é"]}'.encode()


# Over the socket.


class Server:
    """The http server of a node on loopback, in a loop of its own as long as it is asked."""

    def __init__(self, office: Office) -> None:
        self.office = office

    def ask(self, *requests: bytes) -> list[tuple[int, bytes]]:
        async def main() -> list[tuple[int, bytes]]:
            port = free_port()
            well = Route(lambda _: Response(200, "text/plain", b"well\n"))
            server = Http({"/status": well, ORDER: self.office.desk.route()}, Gate(is_open=True))
            await server.serve("127.0.0.1", port)
            answers = [await self._ask(port, request) for request in requests]
            await server.close()
            return answers

        return asyncio.run(main())

    async def _ask(self, port: int, request: bytes) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = b""
        try:
            async with asyncio.timeout(20):
                writer.write(request)
                answer = await reader.read()
        except ConnectionError:
            pass
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return (int(head.split(b" ", 2)[1]) if head else 0), body

    def call(self, do: Callable[[int], Any]) -> Any:
        """Let `do` ask the port block of a node that answers in the background."""

        async def main() -> Any:
            port = free_port()
            server = Http({ORDER: self.office.desk.route()}, Gate(is_open=True))
            await server.serve("127.0.0.1", port)
            try:
                return await asyncio.to_thread(do, port - HTTP)
            finally:
                await server.close()

        return asyncio.run(main())


BODY = b'{"order":"get","key":"/a"}'
JSON = b"Content-Type: application/json\r\n"


def post(head: bytes = JSON, body: bytes = BODY, host: bytes = b"127.0.0.1:27506", length: int | None = None) -> bytes:
    size = b"%d" % (len(body) if length is None else length)
    return b"POST /order HTTP/1.1\r\nHost: " + host + b"\r\n" + head + b"Content-Length: " + size + b"\r\n\r\n" + body


def test_an_order_over_http() -> None:
    office = Office()
    answers = Server(office).ask(
        post(),
        post(b"content-type: Application/JSON; charset=utf-8\r\n", host=b"localhost:27506"),
        post(JSON + b"Origin: http://127.0.0.1:27506\r\n"),
        post(JSON + b"Expect: 100-continue\r\n"),
    )
    assert [200, 200, 200, 100] == [status for status, _ in answers]
    assert 4 == len(office.asked)
    assert b"Written" in answers[0][1]
    assert answers[3][1].startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "request_, status",
    [
        (post(b""), 415),
        (post(b"Content-Type: text/plain\r\n"), 415),
        (post(b"Content-Type: application/x-www-form-urlencoded\r\n"), 415),
        (post(b"Content-Type: multipart/form-data; x=application/json\r\n"), 415),
        (post(JSON + b"Origin: http://evil.example\r\n"), 403),
        (post(JSON + b"Origin: null\r\n"), 403),
        (post(host=b"evil.example:27506"), 421),
        (post(host=b"127.0.0.1.evil.example"), 421),
        (post(JSON + b"Origin: http://evil.example:27506\r\n", host=b"evil.example:27506"), 421),
        (post(length=ORDER_BYTES_MAX + 1), 413),
        (post(length=10**19), 413),
        (post(length=10**30), 400),
        (b"GET /order HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"PUT /order HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405),
        (b"POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405),
        (b"OPTIONS /order HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 405),
        (post(JSON + b"Transfer-Encoding: chunked\r\n", b"x\r\n").replace(b"Content-Length: 3\r\n", b""), 400),
        (post(JSON + b"Host: localhost\r\n"), 400),
        (post(JSON + b"Content-Length: 7\r\n"), 400),
    ],
)
def test_what_a_page_of_a_browser_or_a_liar_can_send_reaches_no_core(request_: bytes, status: int) -> None:
    office = Office()
    answers = Server(office).ask(request_, b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert ([status, 200], []) == ([answer for answer, _ in answers], office.asked)


def test_a_body_that_grows_beyond_its_limit_or_never_ends_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "ORDER_BYTES_MAX", 100)
    monkeypatch.setattr(server, "PATIENCE_S", 0.05)
    office = Office()
    chunked = b"POST /order HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\n" + b"40\r\n"
    chunked += b" " * 64 + b"\r\n40\r\n" + b" " * 64 + b"\r\n"
    filled = post(body=BODY.ljust(100))
    answers = Server(office).ask(chunked, post(length=90), post(), filled)
    assert ([413, 0, 200, 200], 2) == ([status for status, _ in answers], len(office.asked))


def test_too_many_orders_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODIES_MAX", 0)
    assert [503] == [status for status, _ in Server(Office()).ask(post())]


@pytest.mark.parametrize(
    "peer, is_local",
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1", False),
        ("", False),
    ],
)
def test_only_programs_of_this_machine_are_obeyed(peer: str, is_local: bool) -> None:
    assert is_local == Gate().may_write(Request("POST", "/order", peer=peer))


# The command line.


def test_the_command_line_asks_and_is_answered() -> None:
    office = Office()
    told = Server(office).call(lambda port: asking.order(port, "set", key="/CONFIG/a", value='"1s"'))
    assert {"answer": "Written", "number": 7, "count": 1, "is_confirmed": True, "dead": []} == told


@pytest.mark.parametrize(
    "answer, code, text, mend",
    [
        (configuration.OrderRefused(12, "not the root", "10.0.0.1:27500"), "refused", "not the root", "10.0.0.1:27500"),
        (configuration.OrderRefused(6, "too large"), "refused", "too large", "weft status --port"),
        (
            configuration.OrderRefused(
                1, "it would never fire", key="/CONFIG/web/alert/a", dead=("/CONFIG/web/alert/a: E07",)
            ),
            "dead-alert",
            "never fire",
            "weft config list web",
        ),
    ],
)
def test_a_refusal_is_a_sentence_and_its_mend(answer: Any, code: str, text: str, mend: str) -> None:
    def do(port: int) -> None:
        asking.order(port, "delete", key="/CONFIG/a")

    with pytest.raises(UserError) as refused:
        Server(Office(lambda _: answer)).call(do)
    assert code == refused.value.code
    assert text in refused.value.text
    assert mend in refused.value.try_this


def test_nobody_there_or_no_such_core_is_unavailable() -> None:
    with pytest.raises(UserError) as nobody:
        asking.order(free_port() - HTTP, "get", key="/a")
    with pytest.raises(UserError) as nothing:
        Server(Office(cores=())).call(lambda port: asking.order(port, "get", key="/a"))
    assert [3, 3] == [exit_code(error.value.code) for error in (nobody, nothing)]
