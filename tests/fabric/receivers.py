"""Two receivers of alerts for a test: a server of HTTP that keeps what is posted, and one of SMTP that keeps mails."""

import json
import socketserver
from collections.abc import Callable
from email import message_from_string
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self


class Serving:
    """A server in a thread, from `with` on."""

    def __init__(self, server: socketserver.TCPServer) -> None:
        self.server = server

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.server_address[1])

    def __enter__(self) -> Self:
        Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class Hook(Serving):
    """Takes JSON; answers `status`."""

    def __init__(self, port: int = 0, status: int = 204) -> None:
        self.posted: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = status
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                hook.headers.append(dict(self.headers.items()))
                self.send_response(hook.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing on the terminal."""

        super().__init__(ThreadingHTTPServer(("127.0.0.1", port), Handler))


class MailServer(Serving):
    """Speaks as much SMTP as a mail needs (RFC 5321)."""

    def __init__(self, port: int = 0) -> None:
        self.mails: list[tuple[list[str], Message]] = []
        """Recipients and the letter."""
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.say("220 test")
                recipients: list[str] = []
                while line := self.rfile.readline().decode().strip():
                    word = line[:4].upper()
                    if word == "RCPT":
                        recipients.append(line.partition("<")[2].partition(">")[0])
                    if word == "DATA":
                        self.say("354 go on")
                        server.mails.append((recipients, message_from_string(self.letter())))
                    self.say("221 bye" if word == "QUIT" else "250 ok")
                    if word == "QUIT":
                        return

            def letter(self) -> str:
                lines = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), ".")
                return "\n".join(line.removeprefix(".") for line in lines)

            def say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        super().__init__(Server(("127.0.0.1", port), Handler))


class Monitor(Serving):
    """Takes what an export posts; `judge` says the status for a body, and what is answered."""

    def __init__(self, port: int = 0, judge: Callable[[bytes], tuple[int, bytes]] = lambda _: (204, b"")) -> None:
        self.taken: list[bytes] = []
        """Bodies that were answered with success."""
        self.asked: list[dict[str, str]] = []
        """Heads of all requests."""
        self.judge = judge
        monitor = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                monitor.asked.append({name.lower(): value for name, value in self.headers.items()})
                status, said = monitor.judge(body)
                if status < 300:
                    monitor.taken.append(body)
                self.send_response(status)
                self.send_header("content-length", str(len(said)))
                if 300 <= status < 400:
                    self.send_header("location", f"http://127.0.0.1:{monitor.port}/elsewhere")
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                """Nothing on the terminal."""

        super().__init__(ThreadingHTTPServer(("127.0.0.1", port), Handler))
