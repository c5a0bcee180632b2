"""Read trajectories in the terminal.

    python -m scripts.show runs/x/iteration-000010.jsonl                      # one line each
    python -m scripts.show FILE --task TASK_ID                                # its episodes
    python -m scripts.show FILE --task TASK_ID --trajectory 3 --prompts       # everything
    python -m scripts.show FILE --failed                                      # only failures

Reads what training (``trajectories``) and ``scripts.evaluate --trajectories`` write: one JSON line
an episode. A damaged last line, as a killed run leaves it, is named and passed over.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel as Box

from baselines.episodes import Line, read_episodes

_COLUMNS = ("trajectory", "success", "score", "ended by", "steps", "malformed", "inadmissible")


def main(arguments: Sequence[str] | None = None) -> None:
    """List episodes, or show the chosen ones step by step."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.show",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", type=Path, help="JSON lines of episodes")
    parser.add_argument("--task", help="only this task; shows its episodes step by step")
    parser.add_argument("--trajectory", type=int, help="only this trajectory of the task")
    parser.add_argument("--failed", action="store_true", help="only episodes without success")
    parser.add_argument("--prompts", action="store_true", help="with the whole prompts")
    options = parser.parse_args(arguments)
    console = Console()
    try:
        episodes = [line for path in options.files for line in read(path, console)]
    except (OSError, ValueError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    chosen = [
        e
        for e in episodes
        if (options.task is None or e["task_id"] == options.task)
        and (options.trajectory is None or e["trajectory_id"] == options.trajectory)
        and not (options.failed and e["success"])
    ]
    if not chosen:
        tasks = sorted({e["task_id"] for e in episodes})
        listed = ", ".join(tasks[:12]) + (", ..." if len(tasks) > 12 else "")
        parser.exit(2, f"{parser.prog}: error: no such episode. Tasks: {listed}\n")
    if options.task is None:
        for line in overview(chosen):
            _print(console, line)
        return
    for episode in chosen:
        show(episode, console, prompts=options.prompts)


def read(path: Path, console: Console) -> Iterator[Line]:
    """Yield the episodes of a file.

    Raises:
        ValueError: it is no file, or a line before the last is not an episode; names file and line.
    """
    if not path.is_file():
        raise ValueError(
            f"{path} is not a file. Name one of the iteration-*.jsonl that "
            "scripts.train --trajectory_steps N writes, or a file of scripts.evaluate "
            "--trajectories FOLDER."
        )
    episodes, cut = read_episodes(path)
    if cut:
        console.print(f"{path}: the last line is cut off and is left out.", style="yellow")
    yield from episodes


def overview(episodes: Sequence[Line]) -> Iterator[str]:
    """Yield a line an episode, under the name of its task, which is never broken."""
    yield f"{len(episodes)} episodes"
    yield "  ".join(_COLUMNS)
    for task, own in groupby(episodes, key=lambda e: str(e["task_id"])):
        yield task
        for e in own:
            cells = (
                f"{e['trajectory_id']}",
                "yes" if e["success"] else "no",
                f"{e.get('score', 0.0):.2f}",
                str(e.get("stop", "")),
                f"{len(e['steps'])}",
                f"{sum(not s['format_valid'] for s in e['steps'])}",
                f"{sum(not s['action_valid'] for s in e['steps'])}",
            )
            yield "  ".join(c.rjust(len(n)) for c, n in zip(cells, _COLUMNS, strict=True))


def show(episode: Line, console: Console, *, prompts: bool) -> None:
    """Print an episode step by step; a state that was met before is marked."""
    outcome = "success" if episode["success"] else f"no success ({episode.get('stop', '?')})"
    console.rule()
    _print(console, f"{episode['task_id']}, trajectory {episode['trajectory_id']}: {outcome}")
    met: dict[str, int] = {}
    for number, step in enumerate(episode["steps"], 1):
        _print(console, head(number, step, met))
        console.print(Box(escape(body(step, prompts))))
        met.setdefault(step["state_id"], number)
    transcript = episode.get("extras", {}).get("transcript")
    if transcript and prompts:
        console.print(Box(escape(transcript), title="transcript"))


def head(number: int, step: Line, met: Mapping[str, int]) -> str:
    """Number, state, advantage and a critic's value of a step."""
    parts = [f"step {number}", f"state {step['state_id'][:8]}"]
    if step["state_id"] in met:
        parts.append(f"as at step {met[step['state_id']]}")
    if step["state_id"] == step["next_state_id"]:
        parts.append("stays")
    if "advantage" in step:
        parts.append(f"advantage {step['advantage']:+.3f}")
    if step.get("value") is not None:
        parts.append(f"value {step['value']:+.3f}")
    if step.get("reward"):
        parts.append(f"reward {step['reward']:g}")
    return ", ".join(parts)


def body(step: Line, prompts: bool) -> str:
    """The reply, the action that was read from it, its faults; the prompt first if asked for."""
    faults = [str(step[k]) for k in ("format_problem", "invalid_reason") if step.get(k)]
    text = "\n".join([step["reply"], f"-> {step['action']}", *(f"({fault})" for fault in faults)])
    return f"{step['prompt']}\n{text}" if prompts else text


def _print(console: Console, text: str) -> None:
    """Print a line as it is, however wide the terminal."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
