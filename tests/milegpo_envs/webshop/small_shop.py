"""A shop of made-up products, for tests of pages, rewards and rules."""

from pathlib import Path

from milegpo_envs.webshop.catalogue import MemoryCatalogue
from milegpo_envs.webshop.goals import Goal
from milegpo_envs.webshop.product import Product
from milegpo_envs.webshop.rules import FIXED, Rules
from milegpo_envs.webshop.shop import Shop

SHARED = Path(__file__).parents[4] / "shared" / "data" / "webshop"


def product(asin, name, **more):
    values = {
        "description": f"All about {name}.",
        "bullets": ("First bullet", "Second bullet"),
        "options": {},
        "option_images": {},
        "category": "fashion",
        "query": "dresses",
        "product_category": "Clothing \u203a Women \u203a Dresses",
        "attributes": ("machine wash", "long sleeve"),
        "price_text": "$20.00",
        "prices": (20.0,),
        "price_flag": None,
        "images": (),
    }
    return Product(asin=asin, name=name, **{**values, **more})


DRESS = product(
    "B000000001",
    "Ardo Summer Dress",
    options={
        "size": ("small", "large"),
        "color": ("navy blue", 'coffeebrown 3"', "café"),
    },
    option_images={"navy blue": "https://example.org/navy.jpg"},
    images=("https://example.org/dress.jpg",),
    prices=(18.0, 22.5),
)
OTHER_DRESS = product("B000000002", "Belo Winter Gown")
KETTLE = product(
    "B000000003",
    "Kettle <b>&",
    query="kettles",
    category="garden",
    product_category="Home \u203a Kitchen",
    attributes=("stainless",),
    prices=(95.0,),
    description="",
    bullets=("\n ",),
)
SHELL = tuple(product(f"B0000001{i:02}", f"Shirt number {i}") for i in range(20))
PRODUCTS = (DRESS, OTHER_DRESS, KETTLE, *SHELL)
PRICES = tuple(p.prices[0] for p in PRODUCTS)


def goal(**more):
    values = {
        "asin": DRESS.asin,
        "instruction": "Find me machine wash dresses with color: navy blue, and size: small",
        "name": DRESS.name,
        "category": DRESS.category,
        "query": DRESS.query,
        "product_category": DRESS.product_category,
        "attributes": ("machine wash",),
        "options": {"color": "navy blue", "size": "small"},
        "price_upper": 30.0,
        "weight": 1.0,
        "is_human": False,
    }
    return Goal(**{**values, **more})


def nouns(title):
    return [word for word in title.lower().split() if word.isalpha()]


def search(query):
    """Products with a word of the query in their name, in the order of the shop."""
    words = set(query.split())
    return [i for i, p in enumerate(PRODUCTS) if words & set(p.name.lower().split())]


def shop(rules: Rules = FIXED) -> Shop:
    catalogue = MemoryCatalogue("test", PRODUCTS, "0" * 32)
    return Shop(catalogue, search, PRICES, nouns, rules)
