"""Chromium without a window, by Selenium: started, asked, and ended so that nothing is left.

It reaches nothing but one host: every other name and address is mapped to none. All waiting is
bounded. Chromium ends with its driver and the driver with this process, however that ends: the
driver is started by a shell that watches a pipe of ours, and Chromium speaks to it through another.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from milegpo_envs.errors import DataMissing

if TYPE_CHECKING:
    from selenium.webdriver import Remote
    from selenium.webdriver.chrome.options import Options

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVERS = ("chromedriver",)
PACKAGES = ("flask", "selenium")
DEBIAN = "sudo apt-get install chromium chromium-driver"
EXTRA = "pip install 'milegpo[webshop]'"

START_TIMEOUT = 60.0  # seconds until a driver answers and a browser is there
TIMEOUT = 60.0  # seconds of any one answer of theirs

_FLAGS = (
    "--no-sandbox",  # containers allow none; only our own pages are opened
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-proxy-server",
    "--remote-debugging-pipe",
    "--window-size=1280,1000",
)

# Becomes the driver. A child of it waits until the pipe ends, with whoever held it, and clears up.
_KEEPER = """
profile=$1; shift; exec 3<&0
(read -r _ <&3; kill -KILL $$; sleep 3; rm -rf "$profile") >/dev/null 2>&1 &
exec "$0" "$@" 3<&- </dev/null
"""
_PORT = re.compile(r"successfully on port (\d+)")


class BrowserFailed(RuntimeError):
    """The browser broke off in the middle of a task. The next `reset` starts another."""


def missing() -> list[str]:
    """What a browser environment lacks on this machine: one line each, with its remedy."""
    lacking = [name for name in PACKAGES if find_spec(name) is None]
    lines = [f"{' and '.join(lacking)} (run: {EXTRA})"] if lacking else []
    for what, names in (("Chromium", BROWSERS), ("chromedriver", DRIVERS)):
        if program(names) is None:
            lines.append(f"{what}: no {' or '.join(names)} on the path (Debian: {DEBIAN})")
    return lines


def require() -> None:
    """Refuse to go on without a browser.

    Raises:
        DataMissing: says what is missing and how to get it.
    """
    if lines := missing():
        raise DataMissing(f"A browser environment needs {'; and '.join(lines)}.")


def program(names: tuple[str, ...]) -> str | None:
    """Path of the first of some programs that is there."""
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    """One Chromium with one window.

    Args:
        host: the one that it may reach.
        headless: without a window on a screen.

    Raises:
        DataMissing: something is not installed, or there is no screen for a window.
        BrowserFailed: it did not start.
    """

    def __init__(self, host: str, headless: bool = True) -> None:
        require()
        if not headless and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise DataMissing("There is no screen for a window ($DISPLAY). Use headless=True.")
        self.profile = tempfile.mkdtemp(prefix="milegpo-webshop-")
        self.process = _start_driver(self.profile)
        self._end = weakref.finalize(self, _end, self.process, self.profile)
        try:
            self.driver = _connect(_listening_at(self.process), _options(self, host, headless))
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> NoReturn:
        """A running Chromium cannot be taken along.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "A running browser can be neither copied nor pickled. Do so before reset() or after "
            "close(), or use milegpo/WebShop-v0, which plays the same."
        )

    def ask(self, script: str, *arguments: object) -> Any:
        """What a script returns, run in the page.

        Raises:
            BrowserFailed: it broke off, or does not answer in time.
        """
        with _failures():
            return self.driver.execute_script(script, *arguments)

    def visit(self, address: str) -> None:
        """Open a page and wait until it is there.

        Raises:
            BrowserFailed: it broke off, or does not answer in time.
        """
        with _failures():
            self.driver.get(address)

    def close(self) -> None:
        """End it; twice does no harm."""
        driver = self.__dict__.pop("driver", None)
        if driver is not None and self.process.poll() is None:
            # Asked politely it cleans up after itself; what follows is not polite.
            asking = threading.Thread(target=_quit, args=(driver,), daemon=True)
            asking.start()
            asking.join(timeout=10)
        self._end()


def _quit(driver: "Remote") -> None:
    with suppress(Exception):
        driver.quit()


def _end(process: "subprocess.Popen[str]", profile: str) -> None:
    """Kill what is left of a browser, also when the interpreter ends."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(OSError):
        process.stdin.close()  # the shell's child kills the driver, and Chromium ends with it
    process.kill()
    for _ in range(50):
        children = _of_session(process.pid)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        if not children:
            break
        time.sleep(0.02)
    process.wait()  # only now may another process get its number
    process.stdout.close()
    for _ in range(50):
        shutil.rmtree(profile, ignore_errors=True)
        if not os.path.exists(profile):
            return
        time.sleep(0.1)  # Chromium is still writing


def _of_session(leader: int) -> list[int]:
    """Living processes of a session but its leader (Linux); Chromium's are all in the driver's."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session = entry.read_text(errors="replace").rpartition(") ")[2].split()[:4]
            if int(session) == leader and state != "Z" and int(entry.parent.name) != leader:
                found.append(int(entry.parent.name))
    return found


def _start_driver(profile: str) -> "subprocess.Popen[str]":
    driver = program(DRIVERS)
    assert driver is not None
    return subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER, driver, profile, "--port=0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # the terminal's Ctrl-C is for this process only
    )


def _listening_at(process: "subprocess.Popen[str]") -> str:
    """The driver's address, as it says itself; what it says later is read and dropped."""
    assert process.stdout is not None
    said: list[str] = []
    found = threading.Event()
    threading.Thread(target=_listen, args=(process.stdout, said, found), daemon=True).start()
    found.wait(START_TIMEOUT)
    port = next((match for line in said if (match := _PORT.search(line))), None)
    if port is None:
        raise BrowserFailed(f"chromedriver did not start. It said: {' '.join(said) or 'nothing'}")
    return f"http://127.0.0.1:{port[1]}"


def _listen(output: IO[str], said: list[str], found: threading.Event) -> None:
    with suppress(ValueError, OSError):  # closed meanwhile
        for line in output:
            if not found.is_set():
                said.append(line.strip())
            if _PORT.search(line):
                found.set()
    found.set()


def _options(browser: Browser, host: str, headless: bool) -> "Options":
    from selenium.webdriver.chrome.options import Options

    options = Options()
    options.binary_location = program(BROWSERS) or ""
    for flag in _FLAGS:
        options.add_argument(flag)
    if headless:
        options.add_argument("--headless=new")
    options.add_argument(f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {host}")
    options.add_argument(f"--user-data-dir={browser.profile}")
    return options


def _connect(address: str, options: "Options") -> "Remote":
    from selenium.webdriver import Remote
    from selenium.webdriver.common.proxy import Proxy, ProxyType
    from selenium.webdriver.remote.client_config import ClientConfig
    from selenium.webdriver.remote.remote_connection import RemoteConnection

    direct = Proxy({"proxyType": ProxyType.DIRECT})
    config = ClientConfig(address, timeout=int(START_TIMEOUT), proxy=direct)
    with _failures():
        driver = Remote(RemoteConnection(client_config=config), options=options)
        driver.set_page_load_timeout(TIMEOUT)
        driver.set_script_timeout(TIMEOUT)
    return driver


class _failures:  # read as a statement
    """Turns what Selenium and its connection raise into `BrowserFailed`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from selenium.common.exceptions import WebDriverException
        from urllib3.exceptions import HTTPError

        if isinstance(error, WebDriverException | HTTPError | OSError):
            said = str(error).partition("\n")[0]
            raise BrowserFailed(f"Chromium failed: {said or type(error).__name__}") from error
