"""Colour names, as the shop's reward reads them.

The first name found anywhere in a value, even inside a word, stands for the value. The names and
their order are not ours: they are `COLOR_SET` of the official engine's
`web_agent_site/engine/normalize.py` (https://github.com/princeton-nlp/WebShop, arXiv:2207.01206),
copyright 2022 The Trustees of Princeton University, whose licence is for academic and research use.
They are listed here because a purchase is worth the same only if the same names are looked for.
"""

import functools

_NAMES = """
alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown
burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee
cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold
granite grape graphite grass gray green grey heather indigo ivory ivy khaki lavender lemon
leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor mushroom
mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal
rust sand sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal
tiger turquoise violet walnut wheat white wine yellow
"""
COLOURS = tuple(_NAMES.split())


@functools.lru_cache(maxsize=1 << 14)
def simplify(value: str) -> str:
    """Reduce a value to the first colour it contains; a value without one stays.

    >>> simplify("navy blue"), simplify("fashionable"), simplify("size 10")
    ('blue', 'ash', 'size 10')
    """
    return next((colour for colour in COLOURS if colour in value), value)


def only_colour(texts: tuple[str, ...]) -> str | None:
    """The first colour that one of the texts consists of, None if there is none."""
    return next((colour for colour in COLOURS if colour in texts), None)
