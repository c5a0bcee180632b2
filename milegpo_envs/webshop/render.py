"""The renderings of a page: `text_rich`, `text`, `html` and `url`.

text_rich   one node a line, `[button] x [button_]` around what can be clicked, `[clicked button] x
            [clicked button_]` around what was
text        nodes joined by " [SEP] "; the official engine never shows chosen options in it
html        our own page: what the site serves, without style and scripts
url         the address alone, which names neither the task nor what the page offers

All but html are the official engine's to the letter in official mode.
"""

from collections.abc import Callable, Iterator, Mapping
from html import escape

from milegpo_envs.webshop.actions import click
from milegpo_envs.webshop.content import Node, View

SEPARATOR = " [SEP] "

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>WebShop</title>
</head>
<body>
<form id="page" method="post">
{body}
</form>
</body>
</html>
"""


def text_rich(view: View) -> str:
    """One node a line."""
    return "".join(f"{_rich(node)}\n" for node in view.nodes)


def _rich(node: Node) -> str:
    if node.kind == "text":
        return node.text
    word = "clicked button" if node.marked else "button"
    before = {"button": "", "option": "  ", "product": "\n"}[node.kind]
    return f"{before}[{word}] {node.text} [{word}_]"


def text(view: View) -> str:
    """One line, nodes apart by a separator."""
    nodes = view.nodes if view.says_choices else [n for n in view.nodes if n.role != "notice"]
    return SEPARATOR.join(node.text.strip() for node in nodes)


def url(view: View) -> str:
    """Where the page is."""
    return view.address


def html(view: View) -> str:
    """A page whose every node is one element of class `node`, in reading order.

    `data-kind` and `data-marked` say what the node is; text content is its text. Everything that
    can be clicked is a button that posts `action`, the search bar posts `query`, both to the page's
    own address, so that the page holds no session.
    """
    return _PAGE.format(body="\n".join(_elements(view)))


def _elements(view: View) -> Iterator[str]:
    """Elements of the nodes; a product and what belongs to it share a section, options likewise."""
    section = False
    for node in view.nodes:
        opens = node.kind == "product" or node.role == "group"
        inside = node.kind == "option" or (section and node.role in ("name", "price"))
        if section and not inside:
            yield "</section>"
            section = False
        if opens:
            yield f'<section class="{"options" if node.role == "group" else "product"}">'
            section = True
        if node.image:
            yield f'<img src="{escape(node.image)}" alt="" loading="lazy">'
        if (node.kind, node.text) == ("button", "Search"):
            yield '<input id="query" name="query" aria-label="query" autocomplete="off" autofocus>'
        yield _element(node)
    if section:
        yield "</section>"


_TAGS: Mapping[str, str] = {"heading": "h2", "name": "h3", "group": "h4"}


def _element(node: Node) -> str:
    what = f'class="node {node.role}" data-kind="{node.kind}"'
    if node.marked:
        what += ' data-marked="true"'
    if node.kind == "text":
        tag = _TAGS.get(node.role, "p")
        return f"<{tag} {what}>{escape(node.text)}</{tag}>"
    if node.text == "Search":
        return f'<button {what} type="submit">Search</button>'
    action = escape(click(node.text.lower()))
    return f'<button {what} name="action" value="{action}">{escape(node.text)}</button>'


RENDERINGS: Mapping[str, Callable[[View], str]] = {
    "text_rich": text_rich,
    "text": text,
    "html": html,
    "url": url,
}
"""Observation mode -> rendering."""
