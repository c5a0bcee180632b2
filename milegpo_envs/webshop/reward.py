"""What a purchase is worth: r = r_type (attributes met + options met + price met) / (A + O + 1).

A and O count the goal's attributes and options. r is 1 where all of them are met by a product of
the right type, and only then is the purchase a success. The rules are those of the official engine
(arXiv:2207.01206, appendix A.5), whose faults `rules.OFFICIAL` keeps and `rules.FIXED` mends. Fuzzy
comparison is thefuzz's token_set_ratio, computed by rapidfuzz.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from milegpo_envs.errors import DataMissing
from milegpo_envs.webshop.catalogue import Product
from milegpo_envs.webshop.colours import only_colour, simplify
from milegpo_envs.webshop.goals import Goal

THRESHOLD = 85  # two texts are the same above it
_LATIN_1 = dict.fromkeys(range(128, 256))  # thefuzz drops these letters, and no others

_REMEDY = "WebShop's reward needs rapidfuzz. Run: pip install 'milegpo[webshop]'"

Nouns = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Score:
    """A purchase held against its goal.

    type_factor: r_type. title_score: share of the goal title's nouns that the product's title has.
    attributes, options: what was wanted, and whether it is met.
    """

    type_factor: float
    query_match: bool
    category_match: bool
    title_score: float
    attributes: tuple[tuple[str, bool], ...]
    options: tuple[tuple[str, bool], ...]
    price_met: bool

    @property
    def wanted(self) -> int:
        """How many things the goal asks for, the price being one."""
        return len(self.attributes) + len(self.options) + 1

    @property
    def reward(self) -> float:
        """From 0 to 1."""
        met = sum(ok for _, ok in self.attributes + self.options) + self.price_met
        return met / self.wanted * self.type_factor

    @property
    def success(self) -> bool:
        """Whether everything is right."""
        return self.reward == 1.0

    def parts(self) -> dict[str, object]:
        """The breakdown, JSON-able, under the official engine's names, and what was met by name.

        r_type times the sum of the w_* times their r_* is the reward. r_option is None where no
        option was wanted.
        """
        return {
            "reward": self.reward,
            "r_type": self.type_factor,
            "query_match": self.query_match,
            "category_match": self.category_match,
            "title_score": self.title_score,
            "r_att": _share(self.attributes),
            "w_att": len(self.attributes) / self.wanted,
            "r_option": _share(self.options),
            "w_option": len(self.options) / self.wanted,
            "r_price": self.price_met,
            "w_price": 1 / self.wanted,
            "attributes": [[name, ok] for name, ok in self.attributes],
            "options": [[name, ok] for name, ok in self.options],
        }


def _share(checks: tuple[tuple[str, bool], ...]) -> float | None:
    return sum(ok for _, ok in checks) / len(checks) if checks else None


def score(
    product: Product,
    chosen: Mapping[str, str],
    price: float,
    goal: Goal,
    *,
    nouns: Nouns,
    colours_on_both_sides: bool,
) -> Score:
    """Compare a purchase with a goal.

    Args:
        product: what was bought.
        chosen: group -> value of its options.
        price: what it cost.
        goal: what was wanted.
        nouns: of a title, in order, lower-cased, repeats included.
        colours_on_both_sides: see `rules`.
    """
    query_match = product.query == goal.query
    category_match = len(_categories(product.product_category, goal.product_category)) >= 2
    title_score = _title_score(nouns(product.name), nouns(goal.name))
    values = tuple(chosen.values())
    return Score(
        type_factor=_type_factor(query_match or category_match, title_score),
        query_match=query_match,
        category_match=category_match,
        title_score=title_score,
        attributes=tuple((name, has_attribute(product, name)) for name in goal.attributes),
        options=tuple(
            (text, any(meets(value) for value in values))
            for text, meets in _wanted_options(goal, colours_on_both_sides)
        ),
        price_met=goal.price_upper is None or price <= goal.price_upper,
    )


def best_options(
    options: Mapping[str, Sequence[str]], goal: Goal, *, colours_on_both_sides: bool
) -> dict[str, str]:
    """Of options (group -> values), those that meet the most of a goal, few choices before many.

    Exact: one value a group, over the sets of wanted options that can be met.
    """
    tests = [meets for _, meets in _wanted_options(goal, colours_on_both_sides)]
    reached: dict[frozenset[int], dict[str, str]] = {frozenset(): {}}
    for group, values in options.items():
        meet: dict[frozenset[int], str] = {}
        for value in _preferred_first(values, group, goal):
            met = frozenset(i for i, meets in enumerate(tests) if meets(value))
            meet.setdefault(met, value)
        for before, choices in list(reached.items()):
            for met, value in meet.items():
                longer = {**choices, group: value}
                known = reached.get(before | met)
                if known is None or len(longer) < len(known):
                    reached[before | met] = longer
    return reached[max(reached, key=len)]


def _preferred_first(values: Sequence[str], group: str, goal: Goal) -> list[str]:
    """The value that the goal names, before others that would pass for it."""
    named = goal.options.get(group) if isinstance(goal.options, Mapping) else None
    return sorted(values, key=lambda value: value != named and value not in goal.option_values)


def has_attribute(product: Product, attribute: str) -> bool:
    """Whether a product has an attribute, by its list or by its texts."""
    return (
        any(alike(known, attribute) for known in product.attributes)
        or attribute in product.title.lower()
        or attribute in " ".join(product.bullets).lower()
        or attribute in product.description.lower()
    )


def _categories(first: str, second: str) -> set[str]:
    """Parts that two category paths share."""
    a, b = ({part.strip() for part in path.split("\u203a")} for path in (first, second))
    return a & b


def _title_score(bought: Sequence[str], wanted: Sequence[str]) -> float:
    """Shared nouns over the wanted title's, where a repeated noun counts again below only."""
    return len(set(bought) & set(wanted)) / len(wanted) if wanted else 0.2


def _type_factor(related: bool, title_score: float) -> float:
    if title_score == 0.0:
        return 0.0
    if title_score < 0.1:
        return 0.1
    return 1.0 if related or title_score > 0.2 else 0.5


def _wanted_options(
    goal: Goal, colours_on_both_sides: bool
) -> Iterator[tuple[str, Callable[[str], bool]]]:
    """Each wanted option as text, and the test of a chosen value against it."""
    if isinstance(goal.options, Mapping) and not colours_on_both_sides:
        for group, value in goal.options.items():
            yield f"{group}: {value}", functools.partial(_official_test, _one_sided(group, value))
        return
    for value in goal.option_values:
        yield value, functools.partial(_test, value, colours_on_both_sides)


def _official_test(wanted: str, chosen: str) -> bool:
    return alike(simplify(chosen), wanted)


def _test(wanted: str, exact_counts: bool, chosen: str) -> bool:
    """Compare simplified values; letters that the comparison drops must not make equals differ."""
    return (exact_counts and chosen == wanted) or alike(simplify(chosen), simplify(wanted))


def _one_sided(group: str, value: str) -> str:
    """The wanted side as the official engine writes it for synthetic goals.

    It hands a (group, value) pair to the colour rule, which finds a colour only where one of the
    two is nothing but that colour, and then compares with Python's text of the pair.
    """
    return only_colour((group, value)) or str((group, value))


@functools.lru_cache(maxsize=1 << 16)
def alike(a: str, b: str) -> bool:
    """Whether thefuzz's token_set_ratio of two texts is above the threshold.

    Raises:
        DataMissing: rapidfuzz is not installed.
    """
    ratio = _token_set_ratio()
    return round(ratio(_plain(a), _plain(b))) > THRESHOLD


@functools.lru_cache(maxsize=1 << 14)
def _plain(text: str) -> str:
    """What thefuzz makes of a text first: letters and digits, in lower case."""
    from rapidfuzz.utils import default_process

    return default_process(text.translate(_LATIN_1))


@functools.cache
def _token_set_ratio() -> Callable[[str, str], float]:
    try:
        from rapidfuzz.fuzz import token_set_ratio
    except ImportError as error:
        raise DataMissing(_REMEDY) from error
    return token_set_ratio
