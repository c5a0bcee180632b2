"""A small web server for tests of downloads: ranges, interruptions, other answers on demand."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """Files by name, and how the server behaves.

    ranges: whether it can resume. etag: of every file, None for none. cut: bytes after which each
    connection breaks off, None for never. status: answered in place of a file if set. seen: the
    headers Range of the requests, in order.
    """

    def __init__(self, files):
        self.files = files
        self.ranges = True
        self.etag = '"one"'
        self.cut = None
        self.status = None
        self.length = True
        self.seen = []
        self.url = ""


@contextlib.contextmanager
def serving(files):
    site = Site(files)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            asked = self.headers.get("Range")
            site.seen.append(asked)
            content = site.files.get(self.path.lstrip("/"))
            if site.status or content is None:
                self.send_response(site.status or 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start = 0
            unchanged = self.headers.get("If-Range") in (None, site.etag)
            if asked and site.ranges and unchanged:
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content) > 0 and start:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                end = len(content) - 1
                self.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
            if site.etag:
                self.send_header("ETag", site.etag)
            if site.length:
                self.send_header("Content-Length", str(len(content) - start))
            else:
                self.send_header("Connection", "close")
            self.end_headers()
            body = content[start:]
            self.wfile.write(body if site.cut is None else body[: site.cut])
            self.close_connection = site.cut is not None or not site.length

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
