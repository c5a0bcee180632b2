"""Boards for tests, written as level files write them."""

from milegpo_envs.sokoban.notation import read_rows


def board(text):
    """Room and position of a board whose rows are set apart by /."""
    rows = text.split("/")
    return read_rows([row.ljust(max(map(len, rows))) for row in rows])


def play(room, position, moves):
    """Where moves such as "rrdl" lead."""
    names = {"d": "down", "l": "left", "r": "right", "u": "up"}
    for letter in moves:
        position = room.after(position, names[letter])
    return position
