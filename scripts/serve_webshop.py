"""Serve the shop as web pages, to be shopped in by people.

    python -m scripts.serve_webshop                         # generated products, this machine only
    python -m scripts.serve_webshop --data FOLDER --size full --port 3001
    python -m scripts.serve_webshop --task 7                # says where task 7 begins

Every visitor has a goal and pages of their own; after the purchase the shop shows how far the goal
is met. `gym.make("milegpo/WebShopBrowser-v0", url="http://127.0.0.1:3000", ...)` shops here, too,
if data, mode, seed and goals are the same. Pictures that the data name are fetched by the visitor's
browser from where they lie, unless --no-pictures.
"""

import argparse
import errno
import sys
from collections.abc import Sequence

from baselines.bars import progress_bars
from milegpo_envs.errors import EnvError
from milegpo_envs.webshop.catalogue import load_catalogue
from milegpo_envs.webshop.official import FILES
from milegpo_envs.webshop.opening import OpenShop, open_shop, prepare
from milegpo_envs.webshop.rules import RULES

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def main(arguments: Sequence[str] | None = None) -> None:
    """Open the shop, serve until interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        with progress_bars() as advance:
            catalogue = load_catalogue(
                options.data, products=options.products, size=options.size, advance=advance
            )
            prepare(catalogue, advance)
        opened = open_shop(
            options.data,
            options.mode,
            options.seed,
            options.human_goals,
            options.products,
            options.size,
        )
        address = where(opened, options.task)
        serve(opened, options, address)
    except (EnvError, ValueError) as error:
        sys.exit(f"{error}")
    except OSError as error:
        sys.exit(_refused(options, error))
    except KeyboardInterrupt:
        print("\nClosed.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.serve_webshop",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default=LOOPBACK[0], help="default: %(default)s, this machine")
    parser.add_argument("--port", type=_port, default=3000, help="default: 3000; 0: any free one")
    parser.add_argument("--data", help="folder with the official files; default: generated")
    parser.add_argument("--size", choices=tuple(FILES), default="small", help="of the files")
    parser.add_argument("--products", type=int, help="only the first so many")
    parser.add_argument("--mode", choices=tuple(RULES), default="fixed")
    parser.add_argument("--seed", type=int, default=0, help="of prices in official mode")
    parser.add_argument("--human-goals", action="store_true", help="goals written by people")
    parser.add_argument("--task", help="a goal index or a task id, to say where it begins")
    parser.add_argument("--no-pictures", action="store_true", help="drawings for all products")
    return parser


def where(opened: OpenShop, task: str | None) -> str:
    """The address, without host, at which a visitor begins.

    Raises:
        ValueError: no such task.
    """
    if task is None:
        return "/"
    last = len(opened.goals) - 1
    index = opened.index_of(task if "/" in task else f"{opened.name}/{task}")
    if index is None or index > last:
        raise ValueError(
            f"No task {task!r}. Tasks are 0 to {last}, or {opened.task_id(0)!r} and so on."
        )
    return f"/task/{index}"


def serve(opened: OpenShop, options: argparse.Namespace, address: str) -> None:
    """Serve a shop until interrupted.

    Raises:
        OSError: the address cannot be had.
        DataMissing: Flask is not installed.
    """
    from milegpo_envs.webshop.site.server import open_server  # needs Flask

    server = open_server(
        opened, host=options.host, port=options.port, pictures=not options.no_pictures
    )
    host = f"[{options.host}]" if ":" in options.host else options.host
    count = f"{len(opened.shop.catalogue):,} products, {len(opened.goals):,} tasks"
    print(f"{opened.name}: {count}")
    print(f"http://{host}:{server.port}{address}   (Ctrl-C ends it)", flush=True)
    if options.host not in LOOPBACK:
        print("Whoever can reach this machine can shop here.", file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    finally:
        server.server_close()


def _refused(options: argparse.Namespace, error: OSError) -> str:
    """What to do if there is no server at an address."""
    what = f"{options.host}, port {options.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{what} is in use. Choose another with --port, or --port 0 for any free one."
    if error.errno == errno.EACCES:
        return f"{what} is not allowed: {error.strerror}. Choose a port from 1024 with --port."
    return f"{what} cannot be served: {error.strerror or error}."


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return port


if __name__ == "__main__":
    main()
