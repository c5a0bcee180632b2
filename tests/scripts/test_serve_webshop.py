import socket
import threading
import urllib.request
from contextlib import contextmanager

import pytest

pytest.importorskip("flask", reason="the site needs Flask (extra webshop)")

from werkzeug.serving import BaseWSGIServer

from milegpo_envs.webshop.generated import write_official
from scripts import serve_webshop

SMALL = ("--products", "20")


def refused(*arguments):
    with pytest.raises(SystemExit) as ended:
        serve_webshop.main(arguments)
    return str(ended.value.code)


def test_it_serves_until_interrupted_and_says_where(monkeypatch, capsys):
    answers = []

    def serve_once(server):
        said = capsys.readouterr().out
        address = said.partition("http://")[2].split()[0]
        request = urllib.request.Request(f"http://{address}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect)
        asking = threading.Thread(target=lambda: answers.append(opener.open(request, timeout=30)))
        asking.start()
        server.handle_request()
        asking.join(30)
        raise KeyboardInterrupt

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def http_error_303(self, request, file, code, message, headers):
            return file

    monkeypatch.setattr(BaseWSGIServer, "serve_forever", serve_once)
    serve_webshop.main([*SMALL, "--port", "0", "--task", "3"])
    assert answers[0].headers["Location"].startswith("/visit/")
    assert "Closed." in capsys.readouterr().out


def test_a_port_in_use_is_said_with_the_remedy():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} is in use" in refused(*SMALL, "--port", str(port))
        assert "--port 0" in refused(*SMALL, "--port", str(port))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--task", "99999999"), "Tasks are 0 to"),
        (("--task", "other-shop/3"), "Tasks are 0 to"),
        (("--data", "/no/such/folder"), "scripts.download_data webshop"),
        (("--products", "0"), "at least one product"),
        (("--host", "203.0.113.9", *SMALL), "cannot be served"),
    ],
)
def test_what_cannot_be_served_is_said_without_a_traceback(arguments, said):
    assert said in refused(*SMALL, *arguments)


def test_ports_are_checked(capsys):
    for port in ("70000", "-1"):
        assert refused("--port", port) == "2"
        assert "0 to 65535" in capsys.readouterr().err


def test_others_are_let_in_only_when_asked(monkeypatch, capsys):
    monkeypatch.setattr(BaseWSGIServer, "serve_forever", lambda server: None)
    serve_webshop.main([*SMALL, "--port", "0"])
    told = capsys.readouterr()
    assert "http://127.0.0.1:" in told.out
    assert told.err == ""
    serve_webshop.main([*SMALL, "--port", "0", "--host", "0.0.0.0"])
    assert "Whoever can reach this machine" in capsys.readouterr().err


def test_a_shop_that_is_not_built_yet_says_how_far_that_is(monkeypatch, tmp_path):
    write_official(tmp_path, 20)
    said = set()

    @contextmanager
    def bars():
        yield lambda done, total, what: said.add(what)

    monkeypatch.setattr(serve_webshop, "progress_bars", bars)
    monkeypatch.setattr(BaseWSGIServer, "serve_forever", lambda server: None)
    monkeypatch.setattr("milegpo_envs.webshop.nouns.tagged", lambda title: ())
    serve_webshop.main(["--data", str(tmp_path), "--port", "0"])
    assert {"items_shuffle_1000.json", "prices and goals", "search index"} < said
