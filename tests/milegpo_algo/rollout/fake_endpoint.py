"""An OpenAI-compatible endpoint of our own."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeEndpoint:
    """Says "echo: " and the last message; takes a token a word. Faults come first, in order."""

    def __init__(self) -> None:
        self.faults: list[tuple[int, str | bytes, dict[str, str]]] = []
        self.bodies: list[dict[str, object]] = []
        self.keys: list[str | None] = []
        self.counts, self.finish, self.content = True, "stop", ""
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None: ...

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    outer.at_once += 1
                    outer.most_at_once = max(outer.most_at_once, outer.at_once)
                    outer.bodies.append(body)
                    outer.keys.append(self.headers.get("Authorization"))
                    fault = outer.faults.pop(0) if outer.faults else None
                status, text, headers = fault or (200, json.dumps(outer.answer(body)), {})
                with outer.lock:
                    outer.at_once -= 1
                content = text.encode() if isinstance(text, str) else text
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def answer(self, body: dict[str, object]) -> dict[str, object]:
        said = self.content or f"echo: {body['messages'][-1]['content']}"
        usage = {"prompt_tokens": 10, "completion_tokens": len(said.split())}
        return {
            "choices": [{"message": {"content": said}, "finish_reason": self.finish}],
            **({"usage": usage} if self.counts else {}),
        }
