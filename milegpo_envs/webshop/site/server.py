"""Serving the site: for people by a command, for browser environments from a thread."""

import socket
import threading
from dataclasses import dataclass, field

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from milegpo_envs.webshop.opening import OpenShop
from milegpo_envs.webshop.site.app import create_app

LOOPBACK = "127.0.0.1"


class _Quiet(WSGIRequestHandler):
    """A handler that logs errors only."""

    timeout = 60  # seconds that a connection may be silent

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing of requests that went well."""


def open_server(
    opened: OpenShop, *, host: str = LOOPBACK, port: int = 0, pictures: bool = True
) -> BaseWSGIServer:
    """A server that listens; `serve_forever()` is the caller's.

    Args:
        opened: the shop.
        host: address to listen at; the default can be reached from this machine only.
        port: 0 for any free one, see `server.port`.
        pictures: see `create_app`.

    Raises:
        OSError: the address cannot be had, the port is in use, say.
    """
    app = create_app(opened, pictures=pictures)
    # Werkzeug answers a port in use by ending the program, so the address is tried before.
    _check(host, port)
    return make_server(host, port, app, threaded=True, request_handler=_Quiet)


def _check(host: str, port: int) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind(address)


@dataclass(eq=False)
class SharedSite:
    """A site on the loopback that lives in a thread while somebody uses it."""

    server: BaseWSGIServer
    thread: threading.Thread
    users: int = 0

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{LOOPBACK}:{self.server.port}"


@dataclass
class _Sites:
    """The sites of this process, one a shop."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    of_shop: dict[OpenShop, SharedSite] = field(default_factory=dict)


_SITES = _Sites()


def acquire(opened: OpenShop) -> SharedSite:
    """The site of a shop, started if need be; every user must `release` it."""
    with _SITES.lock:
        site = _SITES.of_shop.get(opened)
        if site is None or not site.thread.is_alive():  # it does not outlive a fork
            server = open_server(opened, pictures=False)
            thread = threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
            )
            thread.start()
            site = _SITES.of_shop[opened] = SharedSite(server, thread)
        site.users += 1
        return site


def release(opened: OpenShop, site: SharedSite) -> None:
    """Leave a site; with its last user it ends."""
    with _SITES.lock:
        site.users -= 1
        if site.users > 0:
            return
        if _SITES.of_shop.get(opened) is site:
            del _SITES.of_shop[opened]
    site.server.shutdown()
    site.server.server_close()
    site.thread.join(timeout=10)
