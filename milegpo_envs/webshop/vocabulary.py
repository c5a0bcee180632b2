"""Words of which the generated shop is made: kinds of products, attributes, options, brands.

Everything is invented or everyday language; no text is taken from the official shop.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """A family of products.

    path: its place in the shop. noun: as a query has it, plural. names: what titles call one.
    kinds: a query is a kind and the noun. low, high: usual prices in dollars. options: names of
    option groups, the first of them the likeliest. details: names of groups of `ATTRIBUTES`.
    """

    category: str
    path: str
    noun: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    low: float
    high: float
    options: tuple[str, ...]
    details: tuple[str, ...]


# category | path | noun | names | kinds | prices | option groups | attribute groups
_TABLE = """
fashion | Clothing, Shoes & Jewelry > Women > Clothing | dresses | dress, midi dress, gown | summer, wrap, maxi, lace, shirt | 14 80 | color, size | cloth, cut, care, use, make
fashion | Clothing, Shoes & Jewelry > Men > Clothing | shirts | shirt, button-down, tee | polo, oxford, flannel, henley, linen | 12 60 | color, size | cloth, cut, care, use, make
fashion | Clothing, Shoes & Jewelry > Women > Shoes | sandals | sandal, slide, flip flop | wedge, platform, gladiator, espadrille, sport | 16 90 | size, color | sole, cloth, use, make
fashion | Clothing, Shoes & Jewelry > Men > Shoes | loafers | loafer, moccasin, slip-on | penny, driving, tassel, canvas, boat | 25 140 | size, color | sole, cloth, use, make
fashion | Clothing, Shoes & Jewelry > Women > Sleepwear | pajamas | pajama set, nightgown, sleep shirt | satin, cotton, plaid, thermal, maternity | 15 55 | size, color | cloth, cut, care, use, make
fashion | Clothing, Shoes & Jewelry > Men > Pants | trousers | trousers, chinos, slacks | cargo, hiking, golf, corduroy, work | 20 75 | size, color | cloth, cut, care, use, make
fashion | Clothing, Shoes & Jewelry > Women > Outerwear | jackets | jacket, coat, parka | puffer, rain, denim, quilted, trench | 30 160 | color, size | cloth, cut, care, use, make
fashion | Clothing, Shoes & Jewelry > Girls > Swimwear | swimsuits | swimsuit, one-piece, tankini | ruffle, racerback, modest, tropical, striped | 13 40 | color, size | cloth, cut, use, make
fashion | Clothing, Shoes & Jewelry > Jewelry | necklaces | necklace, pendant, chain | pearl, locket, choker, birthstone, layered | 9 70 | style, color | metal, use, make
fashion | Clothing, Shoes & Jewelry > Accessories | belts | belt, waistband, strap | dress, braided, ratchet, canvas, stretch | 10 45 | size, color | cloth, metal, use, make
beauty | Beauty & Personal Care > Hair Care | shampoos | shampoo, hair wash, cleanser | volume, clarifying, baby, dandruff, purple | 6 40 | scent, size | skin, formula, ritual, look
beauty | Beauty & Personal Care > Skin Care > Face | moisturizers | moisturizer, face cream, lotion | night, gel, tinted, eye, neck | 9 60 | size, scent | skin, formula, ritual, look
beauty | Beauty & Personal Care > Makeup | lipsticks | lipstick, lip stain, lip gloss | matte, liquid, crayon, metallic, balm | 5 30 | color, style | skin, formula, ritual, look
beauty | Beauty & Personal Care > Oral Care | toothbrushes | toothbrush, brush head, oral cleaner | electric, bamboo, travel, toddler, sonic | 4 70 | color, style | tool, formula, ritual, look
beauty | Beauty & Personal Care > Hair Care > Styling | hair brushes | hair brush, comb, detangler | paddle, round, vent, scalp, boar | 6 35 | color, style | tool, ritual, look
beauty | Beauty & Personal Care > Fragrance | perfumes | perfume, eau de toilette, body mist | floral, woody, citrus, vanilla, oriental | 12 95 | size, scent | formula, ritual, look
beauty | Beauty & Personal Care > Bath & Body | soaps | soap, body bar, hand wash | goat, charcoal, oatmeal, castile, foaming | 5 28 | scent, size | skin, formula, ritual, look
beauty | Beauty & Personal Care > Nails | nail polishes | nail polish, lacquer, gel polish | glitter, chrome, quick, pastel, builder | 5 26 | color, style | formula, ritual, look
beauty | Beauty & Personal Care > Tools | makeup mirrors | makeup mirror, vanity mirror, compact | lighted, folding, wall, handheld, magnifying | 12 80 | color, size | tool, power, ritual, look
beauty | Beauty & Personal Care > Shaving | razors | razor, shaver, trimmer | safety, foil, body, bikini, straight | 8 110 | color, style | tool, power, ritual, look
grocery | Grocery & Gourmet Food > Snack Foods > Bars | snack bars | snack bar, nutrition bar, energy bar | protein, granola, fruit, nut, oat | 8 45 | flavor name, size | diet, taste, pantry, origin
grocery | Grocery & Gourmet Food > Beverages > Tea | teas | tea, tea bags, loose leaf | green, herbal, black, chai, oolong | 6 35 | flavor name, size | diet, taste, pantry, origin
grocery | Grocery & Gourmet Food > Beverages > Coffee | coffees | coffee, coffee beans, ground roast | espresso, decaf, instant, breakfast, mocha | 8 48 | flavor name, size | diet, taste, pantry, origin
grocery | Grocery & Gourmet Food > Pantry > Sauces | sauces | sauce, dip, dressing | pasta, barbecue, chili, curry, pesto | 5 30 | flavor name, size | diet, taste, pantry, origin
grocery | Grocery & Gourmet Food > Snack Foods | crackers | crackers, crisps, thins | rice, seed, cheese, graham, sourdough | 5 32 | flavor name, size | diet, taste, pantry, origin
grocery | Grocery & Gourmet Food > Candy & Chocolate | candies | candy, gummies, chews | gummy, caramel, sour, chocolate, licorice | 5 34 | flavor name, size | diet, taste, pantry, origin
grocery | Grocery & Gourmet Food > Pantry > Baking | baking mixes | baking mix, flour blend, batter | pancake, brownie, muffin, bread, waffle | 6 30 | flavor name, size | diet, pantry, origin
grocery | Grocery & Gourmet Food > Breakfast | cereals | cereal, muesli, clusters | corn, bran, puffed, rye, hemp | 5 29 | flavor name, size | diet, taste, pantry, origin
grocery | Grocery & Gourmet Food > Meat & Seafood | jerkies | jerky, meat stick, biltong | beef, turkey, salmon, mushroom, venison | 8 50 | flavor name, size | diet, taste, pantry, origin
grocery | Grocery & Gourmet Food > Herbs & Spices | seasonings | seasoning, spice blend, rub | taco, garlic, steak, popcorn, lemon | 5 24 | flavor name, size | diet, taste, pantry, origin
electronics | Electronics > Television & Video > Accessories | cables | cable, cord, adapter | hdmi, ethernet, optical, charging, coaxial | 6 50 | size, color | signal, build, device, make
electronics | Electronics > Portable Audio | speakers | speaker, soundbar, boombox | bookshelf, shower, outdoor, ceiling, karaoke | 18 220 | color, style | sound, power, device, make
electronics | Electronics > Headphones | headphones | headphones, earbuds, headset | sleep, gaming, studio, running, kids | 12 200 | color, style | sound, power, device, make
electronics | Electronics > Computers > Accessories | keyboards | keyboard, keypad, keyboard combo | mechanical, ergonomic, bluetooth, compact, backlit | 15 150 | color, style | signal, power, device, make
electronics | Electronics > Computers > Tablets | tablet cases | tablet case, folio, sleeve | magnetic, rugged, trifold, pencil, clear | 10 55 | color, size | build, device, make
electronics | Electronics > Camera & Photo | tripods | tripod, phone stand, monopod | travel, flexible, overhead, selfie, video | 12 130 | color, size | build, mount, device, make
electronics | Electronics > Security | cameras | camera, doorbell, dash cam | baby, indoor, trail, solar, wildlife | 25 240 | style, color | picture, power, device, make
electronics | Electronics > Television & Video | projectors | projector, home theater, beamer | pocket, laser, short throw, ceiling mount, movie | 55 600 | style, color | picture, power, device, make
electronics | Electronics > Wearables | watch bands | watch band, watch strap, bracelet | silicone, nylon, milanese, leather, sport loop | 7 45 | color, size | build, device, make
electronics | Electronics > Power | chargers | charger, power bank, charging dock | wall, car, wireless, solar panel, desktop | 9 85 | color, style | power, signal, device, make
garden | Home & Kitchen > Furniture > Living Room | tables | table, side table, stand | console, coffee, nesting, drop leaf, accent | 45 520 | color, size | wood, room, house, make
garden | Home & Kitchen > Bedding | pillow covers | pillow cover, cushion case, sham | throw, lumbar, euro, velvet, outdoor | 8 40 | size, color | fabric, room, house, make
garden | Home & Kitchen > Window Treatments | curtains | curtain, drape, window panel | blackout, sheer, cafe, thermal, shower | 14 90 | size, color | fabric, room, house, make
garden | Home & Kitchen > Rugs | rugs | rug, floor mat, runner | area, shag, kitchen, bath, jute | 18 260 | size, color | fabric, room, house, make
garden | Home & Kitchen > Lighting | lamps | lamp, light fixture, sconce | floor, desk, bedside, arc, tiffany | 20 190 | color, style | glow, room, house, make
garden | Home & Kitchen > Furniture > Bedroom | bed frames | bed frame, headboard, platform | metal, bunk, daybed, storage, canopy | 90 780 | size, color | wood, room, house, make
garden | Home & Kitchen > Wall Art | wall clocks | wall clock, timepiece, decor clock | pendulum, digital, cuckoo, farmhouse, silent | 14 120 | style, color | wood, glow, house, make
garden | Home & Kitchen > Furniture > Dining | chairs | chair, stool, bench | dining, bar, rocking, folding, swivel | 40 420 | color, style | wood, room, house, make
garden | Home & Kitchen > Storage | baskets | basket, bin, organizer | wicker, laundry, wire, toy, hanging | 10 70 | size, color | fabric, room, house, make
garden | Home & Kitchen > Candles | candles | candle, wax melt, tealight | soy, pillar, flameless, beeswax, jar | 7 45 | scent, size | glow, house, make
"""  # noqa: E501  # a table is read by its columns

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    group: tuple(f"{first} {second}" for firsts, second in lines for first in firsts.split())
    for group, lines in {
        "cloth": (
            ("fleece velvet suede mesh nylon spandex wool silk bamboo hemp", "lining"),
            ("cotton modal rayon cashmere polyester acrylic", "blend"),
            ("faux genuine vegan", "leather"),
            ("button zipper buckle drawstring hook snap", "closure"),
            ("stretchy breathable", "fabric"),
        ),
        "cut": (
            ("slim relaxed regular loose classic athletic", "fit"),
            ("long short cap bell puff raglan", "sleeve"),
            ("crew v scoop boat square halter", "neck"),
            ("elastic high empire smocked paperbag", "waist"),
            ("side cargo kangaroo hidden", "pockets"),
        ),
        "care": (
            ("machine hand gentle cold", "wash"),
            ("tumble line flat", "dry"),
            ("wrinkle fade shrink stain pilling", "resistant"),
        ),
        "sole": (
            ("rubber cork gum leather foam", "sole"),
            ("arch heel ankle", "support"),
            ("memory cloud gel", "insole"),
            ("open round pointed almond", "toe"),
            ("ankle slingback quick velcro", "strap"),
        ),
        "metal": (
            ("sterling polished brushed hammered", "silver"),
            ("rose plated filled champagne", "gold"),
            ("nickel lead tarnish cadmium", "free"),
            ("stainless surgical", "steel"),
            ("lobster magnetic toggle", "clasp"),
        ),
        "skin": (
            ("sensitive oily dry mature acne normal", "skin"),
            ("damaged curly fine colored thinning frizzy", "hair"),
            ("dark fine deep", "circles"),
        ),
        "formula": (
            ("paraben sulfate cruelty alcohol fragrance silicone gluten phthalate", "free"),
            ("argan coconut jojoba rosehip almond castor", "oil"),
            ("hyaluronic salicylic lactic kojic", "acid"),
            ("vitamin peptide caffeine retinol", "serum"),
            ("quick long smudge", "lasting"),
        ),
        "tool": (
            ("soft nylon charcoal tapered dense", "bristles"),
            ("ergonomic bamboo foldable weighted", "handle"),
            ("travel storage hard", "case"),
            ("oral tongue gum", "hygiene"),
        ),
        "diet": (
            ("gluten dairy soy nut egg grain lactose", "free"),
            ("low zero reduced", "sugar"),
            ("keto vegan paleo kosher halal", "friendly"),
            ("plant whey pea", "protein"),
            ("high prebiotic", "fiber"),
            ("artificial natural", "colors"),
            ("non certified", "gmo"),
            ("usda fairtrade", "organic"),
        ),
        "taste": (
            ("rich mild smoky tangy bold nutty", "flavor"),
            ("slow stone dark medium", "roasted"),
            ("hand small family", "crafted"),
            ("resealable recyclable single", "pouch"),
            ("great perfect", "gift"),
        ),
        "signal": (
            ("high super ultra", "speed"),
            ("gold nickel silver", "plated"),
            ("plug hot quick", "swap"),
            ("usb hdmi optical aux", "port"),
            ("noise double braided", "shielding"),
        ),
        "build": (
            ("aluminum zinc titanium", "alloy"),
            ("carbon glass", "fiber"),
            ("tempered scratch anti", "glass"),
            ("quick tool easy", "release"),
            ("dust water shock drop", "proof"),
            ("slim lightweight rigid", "profile"),
        ),
        "sound": (
            ("stereo surround spatial hifi", "sound"),
            ("deep punchy extra", "bass"),
            ("noise echo wind", "cancelling"),
            ("hands tangle", "free"),
            ("dual beamforming boom", "microphone"),
        ),
        "power": (
            ("fast wireless solar reverse", "charging"),
            ("rechargeable replaceable lithium", "battery"),
            ("auto sleep", "shutoff"),
            ("long low", "standby"),
            ("overheat surge overcharge", "protection"),
        ),
        "mount": (
            ("ball fluid pan", "head"),
            ("remote bluetooth", "shutter"),
            ("carry padded", "bag"),
            ("telescopic twist", "legs"),
        ),
        "picture": (
            ("night color motion", "vision"),
            ("ultra full", "hd"),
            ("wide fisheye telephoto", "angle"),
            ("cloud local", "storage"),
            ("optical digital", "zoom"),
        ),
        "wood": (
            ("solid reclaimed engineered", "wood"),
            ("walnut oak cherry espresso", "finish"),
            ("steel iron brass", "frame"),
            ("easy tool quick", "assembly"),
            ("hairpin tapered turned", "legs"),
            ("adjustable hidden open", "shelf"),
        ),
        "fabric": (
            ("double reversible", "sided"),
            ("blackout thermal waterproof", "backing"),
            ("tufted woven knitted embroidered", "texture"),
            ("machine spot", "washable"),
            ("hidden invisible", "zipper"),
            ("super ultra", "soft"),
        ),
        "room": (
            ("living dining guest powder laundry", "room"),
            ("space storage", "saving"),
            ("mid modern", "century"),
            ("farmhouse coastal boho industrial", "style"),
            ("heavy commercial", "duty"),
        ),
        "glow": (
            ("warm cool dimmable amber", "light"),
            ("touch remote voice", "control"),
            ("clear frosted seeded", "shade"),
            ("lead smoke soot", "free"),
            ("battery mains", "operated"),
        ),
        "use": (
            ("petite plus tall", "length"),
            ("boho retro preppy", "chic"),
            ("daily office travel outdoor holiday summer winter party beach evening", "wear"),
            ("birthday holiday wedding graduation anniversary teacher", "gift"),
            ("adult toddler teen unisex", "sizing"),
            ("yoga golf tennis running hiking", "ready"),
            ("layered fringed pleated beaded", "details"),
            ("polka floral paisley gingham leopard", "print"),
        ),
        "ritual": (
            ("collagen keratin biotin", "boost"),
            ("mineral plant cica", "based"),
            ("morning evening weekly salon", "routine"),
            ("pump spray dropper roll tube", "applicator"),
            ("dermatologist vegan allergy clinically", "tested"),
            ("leak travel child", "proof cap"),
            ("bright even dewy radiant", "glow"),
            ("green black white", "clay"),
            ("rose aloe chamomile oat", "extract"),
        ),
        "pantry": (
            ("potluck barbecue brunch picnic", "favorite"),
            ("iron zinc calcium", "fortified"),
            ("school office road hiking movie", "snack"),
            ("family snack bulk trial", "size bag"),
            ("stone brick wood", "oven baked"),
            ("sun air freeze", "dried"),
            ("cane coconut date", "sweetened"),
            ("shelf heat freezer", "stable"),
            ("fresh crisp chewy crunchy", "texture"),
            ("bpa foil zip", "lined pack"),
        ),
        "device": (
            ("quad octa dual", "core"),
            ("app gesture knob", "operation"),
            ("plug dual easy guided", "setup"),
            ("tablet laptop console phone car", "compatible"),
            ("one two three", "year warranty"),
            ("oled led lcd", "display"),
            ("clip desk wall ceiling", "mounting"),
            ("low ultra zero", "latency"),
            ("indicator status accent", "lights"),
            ("detachable retractable coiled", "wiring"),
            ("magnetic suction adhesive", "holder"),
        ),
        "house": (
            ("corner narrow oversized", "footprint"),
            ("child spill tip", "safe"),
            ("pet kid budget renter", "friendly"),
            ("lint odor mildew rust scuff", "resistant"),
            ("patio balcony bathroom hallway attic dorm", "decor"),
            ("padded non felt", "slip feet"),
            ("stackable nesting folding", "design"),
            ("assembled boxed flat", "packed"),
            ("matte gloss weathered antique", "coating"),
            ("oeko fsc greenguard", "certified"),
        ),
        "make": (
            ("marble terrazzo honeycomb herringbone", "pattern"),
            ("italian french nordic japanese moroccan scottish andean", "inspired"),
            ("chrome pewter copper gunmetal bronze", "accents"),
            ("laser kiln mirror", "finished"),
            ("water oil sweat", "repellent"),
            ("recycled upcycled reclaimed", "materials"),
            ("left ambidextrous", "handed"),
        ),
        "origin": (
            ("pepper tomato ginger saffron truffle", "infused"),
            ("ready heat slow", "to serve"),
            ("italian french mexican thai greek indian cajun hawaiian", "style recipe"),
            ("breakfast lunch dinner dessert", "side"),
            ("bite mini jumbo", "sized"),
            ("quick stovetop microwave", "preparation"),
            ("himalayan celtic", "salted"),
            ("valley island mountain", "grown"),
        ),
        "look": (
            ("velvet whipped jelly powder", "formula"),
            ("daytime overnight post", "workout care"),
            ("satin sheer velvet pearl", "sheen"),
            ("salon spa hotel", "quality"),
            ("bridal stage office festival", "look"),
            ("spf uv pollution", "shield"),
            ("mess drip streak", "free application"),
            ("refillable glass compostable", "packaging"),
        ),
    }.items()
}
"""Group -> attributes; families name the groups that suit them."""


def _listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(text.split()).split(", "))


COLORS = _listed(
    """
    black, white, navy blue, army green, wine red, light gray, rose gold, khaki, coral, teal, ivory,
    dark brown, mustard, lavender, charcoal, blush pink, sky blue, burgundy, olive, beige,
    turquoise, café latte, black/white, red/black plaid, grey - 2, 01-silver, b1-purple, midnight,
    sage green, copper
    """
)
CLOTHES_SIZES = _listed(
    """
    x-small, small, medium, large, x-large, xx-large, 3x-large, large tall, 2x plus
    """
)
SHOE_SIZES = _listed(
    """
    5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5, 10, 10.5 wide, 11, 12 wide
    """
)
FLAVORS = _listed(
    """
    peanut butter, salted caramel, blueberry, mint chocolate, original, honey mustard, lemon ginger,
    maple pecan, hazelnut, spicy, sea salt, smoked paprika, vanilla bean, cinnamon, mango/chili,
    crème brûlée, raspberry, garlic herb, coconut, variety pack
    """
)
PACKS = _listed(
    """
    12 count (pack of 1), 12 count (pack of 3), 6 count (pack of 1), 1 pound (pack of 1), 8 ounce
    (pack of 2), 16 ounce (pack of 1), 3.5 ounce (pack of 6), 24 count (pack of 1)
    """
)
BOTTLES = _listed(
    """
    1.7 fl oz, 3.4 fl oz, 8 fl oz (pack of 1), 8 fl oz (pack of 2), 12 ounce, 16 fl oz, travel size,
    100ml, 32 fl oz (pack of 1)
    """
)
SCENTS = _listed(
    """
    lavender, coconut milk, mint, citrus grove, unscented, sandalwood, rose petal, eucalyptus, fresh
    linen, vanilla, cedar/sage, jasmine
    """
)
LENGTHS = _listed(
    """
    3 feet, 6 feet, 10 feet, 15 feet, 25 feet, 8 inch, 10.2 inch, 12.9 inch, 40mm, 44mm
    """
)
FURNISHING_SIZES = _listed(
    """
    16" x 16", 18" x 18", 20" x 20", 2' x 3', 4' x 6', 8' x 10', 52"w x 84"l, 42"w x 63"l, twin,
    full, queen, king, set of 2, set of 4
    """
)
STYLES = _listed(
    """
    classic, deluxe, gift box, single, set of 3, with stand, modern, vintage, refurbished, standard
    packaging
    """
)
ADJECTIVES = _listed(
    """
    premium, cozy, portable, elegant, durable, vintage, modern, adjustable, reusable, decorative,
    natural, handmade, everyday, professional, lightweight, luxurious, compact, versatile
    """
)
USES = _listed(
    """
    home, travel, office, camping, gifts, weddings, school, parties, beginners, dorms, kitchens,
    apartments, holidays, picnics, hotels, studios
    """
)
NOT_NOUNS = frozenset(
    (
        *ADJECTIVES,
        *_listed(
            """
            for, one, two, three, non, anti, free, resistant, repellent, friendly, compatible,
            lasting, certified, tested, sized, dried, sweetened, baked, roasted, crafted, grown,
            salted, infused, fortified, safe, based, petite, tall, finished, inspired, handed,
            operated, packed, lined, plated, washable, ready, soft, super, ultra, high, low, long,
            short, deep, slim, relaxed, regular, loose, classic, quick, easy, hidden, open, round,
            pointed, solid, engineered, tapered, turned, polished, brushed, dark, fine, damaged,
            curly, sensitive, oily, dry, mature, rich, mild, smoky, tangy, bold, nutty, wireless,
            fast, rechargeable, replaceable, magnetic, detachable, retractable, coiled, folding,
            lighted, magnifying, quilted, layered, braided, electric, mechanical, ergonomic,
            rugged, flexible, electrolytic, tinted, liquid, matte, floral, woody, oriental,
            tropical, striped, driving, penny, clarifying, foaming, puffed, sour, gummy, instant,
            overhead, outdoor, indoor, hanging, rocking, dining, digital, silent
            """
        ),
    )
)
"""Words that the titles of this shop have and that name nothing."""

BRAND_STARTS = _listed(
    """
    bar, cal, dor, el, fen, gar, hol, in, jas, kor, lum, mar, nor, ol, per, quin, ros, sol, tav, ul,
    ven, wex, yor, zan, bri, cres, dra, fal, hav, juni
    """
)
BRAND_MIDDLES = _listed(
    """
    a, e, i, o, u, ari, eno, ila, ono, ura, ave
    """
)
BRAND_ENDS = _listed(
    """
    dale, ford, lane, mark, mere, nest, ridge, row, son, thorn, vale, wick, worth, zone
    """
)


def _family(line: str) -> Family:
    category, path, noun, names, kinds, prices, options, details = (
        cell.strip() for cell in line.split(" | ")
    )
    low, high = prices.split()
    listed = (tuple(cell.split(", ")) for cell in (names, kinds, options, details))
    name, kind, option, detail = listed
    return Family(
        category,
        path.replace(">", "\u203a"),
        noun,
        name,
        kind,
        float(low),
        float(high),
        option,
        detail,
    )


FAMILIES = tuple(_family(line) for line in _TABLE.strip().splitlines())
KINDS = tuple(
    (family, kind)
    for kind_number in range(5)
    for family in FAMILIES
    for kind in family.kinds[kind_number : kind_number + 1]
)
"""Family and kind of every query, families taking turns."""
