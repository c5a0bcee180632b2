"""The Flask site: what a person, or a browser environment, shops on.

Every page shows the nodes of `content.look`, each as an element of class `node`, in reading order,
its text unchanged; all that stands there for people only is outside of such elements. What can be
clicked is a button that posts `action`, the search bar posts `query`, both to the page's own
address. Facts about the page that its text does not hold (the canonical state, say) are JSON in the
element `facts`, for the environment. After the purchase the page shows how far the goal is met.

Scripts, styles and drawings are served from here. Pictures of products lie elsewhere on the
network; they are asked for only where `pictures` is set, and a policy forbids all else.
"""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from milegpo_envs.errors import DataMissing
from milegpo_envs.webshop.actions import Click, Move, Search, click
from milegpo_envs.webshop.canonical import CANONICAL
from milegpo_envs.webshop.content import look
from milegpo_envs.webshop.opening import OpenShop
from milegpo_envs.webshop.reward import Score
from milegpo_envs.webshop.shop import Detail, Done, Item, Page, Refused
from milegpo_envs.webshop.site import layout
from milegpo_envs.webshop.site.visits import Visit, Visits

try:
    import flask
    from werkzeug.wrappers import Response
except ImportError as error:
    raise DataMissing("WebShop's site needs Flask. Run: pip install 'milegpo[webshop]'") from error

LONGEST_POST = 64 << 20  # bytes
EXAMPLES = 12  # goals listed on the first page
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;", "\r": "&#13;"}


def create_app(opened: OpenShop, *, pictures: bool = True) -> flask.Flask:
    """Build the site of a shop.

    Args:
        opened: the shop and its goals.
        pictures: whether browsers may fetch the pictures that the data name.
    """
    app = flask.Flask(__name__)
    app.config.update(MAX_CONTENT_LENGTH=LONGEST_POST, MAX_FORM_MEMORY_SIZE=LONGEST_POST)
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters.update(exact=exact, action=lambda node: click(node.text.lower()))
    app.jinja_env.globals.update(shop_name=opened.name, goals=len(opened.goals), pictures=pictures)
    site = _Site(opened)
    app.add_url_rule("/", view_func=site.start)
    app.add_url_rule("/task/", view_func=site.chosen_task)
    app.add_url_rule("/task/<int:goal>", view_func=site.begin)
    app.add_url_rule("/visit/<token>", view_func=site.newest)
    app.add_url_rule("/visit/<token>/<int:number>", view_func=site.page)
    app.add_url_rule("/visit/<token>/<int:number>", view_func=site.act, methods=["POST"])
    for code in (404, 405, 413, 500):
        app.register_error_handler(code, _message)
    app.after_request(_Headers(pictures))
    return app


class _Headers:
    """Headers of every answer."""

    def __init__(self, pictures: bool) -> None:
        images = "'self' data: https: http:" if pictures else "'self' data:"
        self._policy = (
            f"default-src 'self'; img-src {images}; base-uri 'none'; form-action 'self'; "
            "frame-ancestors 'none'; object-src 'none'"
        )

    def __call__(self, response: flask.Response) -> flask.Response:
        response.headers["Content-Security-Policy"] = self._policy
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        if flask.request.endpoint != "static":
            response.headers["Cache-Control"] = "no-store"
        return response


class _Site:
    """The pages, one method each."""

    def __init__(self, opened: OpenShop) -> None:
        self._opened = opened
        self._visits = Visits(opened)

    def start(self) -> flask.Response:
        """A choice of goals."""
        count = min(EXAMPLES, len(self._opened.goals))
        examples = [(i, self._opened.goals[i].instruction_text) for i in range(count)]
        return _page("start.html", examples=examples)

    def chosen_task(self) -> Response:
        """The goal whose number was typed, any if none was."""
        goals = len(self._opened.goals)
        goal = flask.request.args.get("goal", "").strip() or str(secrets.randbelow(goals))
        if not (goal.isdecimal() and len(goal) <= 12 and int(goal) < goals):
            flask.abort(404)
        return flask.redirect(flask.url_for("begin", goal=int(goal)), 303)

    def begin(self, goal: int) -> Response:
        """A new customer."""
        if goal >= len(self._opened.goals):
            flask.abort(404)
        return _to(self._visits.begin(goal), 0)

    def newest(self, token: str) -> Response:
        """The page that a customer came to last."""
        return _to(token, self._visit(token).last)

    def page(self, token: str, number: int) -> flask.Response | Response:
        """A page of a visit."""
        visit = self._visit(token)
        page = visit.pages.get(number)
        if page is None:
            return _to(token, visit.last)
        shop, goal = self._opened.shop, self._opened.goals[visit.goal]
        view = look(shop, page, goal, str(visit.goal))
        product = shop.product(page) if isinstance(page, Item | Detail | Done) else None
        return _page(
            "page.html",
            kind=type(page).__name__.lower(),
            part=page.part if isinstance(page, Detail) else "",
            blocks=layout.blocks(shop, page, view.nodes),
            picture=None if product is None else layout.picture(product, layout.chosen_on(page)),
            picture_of=layout.picture,
            facts=Markup(_ascii(self._facts(visit, number, page, view.address))),
            searchable=not (isinstance(page, Done) and shop.rules.ends_at_purchase),
            visit=visit,
            goal=goal,
            verdict=_verdict(page.score) if isinstance(page, Done) else None,
            product=product,
        )

    def act(self, token: str, number: int) -> Response:
        """A move from a page; what the page does not offer leads nowhere."""
        visit = self._visit(token)
        move = posted_move(flask.request.form)
        try:
            if move is not None:
                number = self._visits.follow(visit, number, move)
        except Refused:
            number = visit.last
        return _to(token, number)

    def _visit(self, token: str) -> Visit:
        visit = self._visits.find(token)
        if visit is None:
            flask.abort(404)
        return visit

    def _facts(self, visit: Visit, number: int, page: Page, where: str) -> Mapping[str, Any]:
        score = page.score if isinstance(page, Done) else None
        return {
            "task_id": self._opened.task_id(visit.goal),
            "number": number,
            "address": where,
            "states": {kind: CANONICAL[kind](self._opened.shop, page, "") for kind in STATES},
            "receipt": None if score is None else [score.success, score.reward, score.parts()],
        }


STATES = ("page", "markov")
"""Kinds of canonical states that a page states; the third is its text."""


def posted_move(form: Mapping[str, str]) -> Move | None:
    """The move that a form sends; None for nonsense and for a search without words.

    `action` is a button's, which may click what an action cannot name (brackets, line breaks).
    `exact` is the query as JSON in ASCII; it counts where a form's own encoding would change the
    query (a carriage return, half of a surrogate pair).
    """
    if "action" in form:
        action = form["action"]
        is_click = action.startswith("click[") and action.endswith("]")
        return Click(action[len("click[") : -1]) if is_click else None
    query = form.get("query", "")
    if "exact" in form:
        try:
            query = json.loads(form["exact"])
        except ValueError:
            return None
    if not isinstance(query, str) or not query:
        return None
    return Search(tuple(query.lower().split(" ")))


def exact(text: str) -> Markup:
    """Escape a text so that a browser's document holds it unchanged, carriage returns included."""
    return Markup("".join(_ESCAPES.get(letter, letter) for letter in text))


def _ascii(facts: Mapping[str, Any]) -> str:
    """JSON that can stand in a script element."""
    return json.dumps(facts).replace("<", "\\u003c")


def _verdict(score: Score) -> Mapping[str, Any]:
    """What the page after a purchase tells a person."""
    checks = [("attribute", *check) for check in score.attributes]
    checks += [("option", *check) for check in score.options]
    checks.append(("price", "within the bound", score.price_met))
    return {
        "score": score,
        "percent": round(100 * score.reward),
        "met": sum(met for _, _, met in checks),
        "checks": checks,
    }


def _page(template: str, **values: Any) -> flask.Response:
    text = flask.render_template(template, **values)
    # Halves of surrogate pairs have no place in UTF-8.
    return flask.Response(text.encode("utf-8", "replace"), mimetype="text/html")


def _to(token: str, number: int) -> Response:
    return flask.redirect(flask.url_for("page", token=token, number=number), 303)


def _message(problem: Exception) -> tuple[flask.Response, int]:
    code = getattr(problem, "code", 500)
    return _page("message.html", code=code), code
