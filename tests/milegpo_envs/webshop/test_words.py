import random

import pytest

from milegpo_envs.webshop import words
from milegpo_envs.webshop.words import LONGEST, Analyzer, tokens

ASCII_SIGNS = "aB1_.:',;- \"#*"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6.5 ft, 1,000 pcs", ["6.5", "ft", "1,000", "pcs"]),
        ("don't o'neill's 'quoted'", ["don't", "o'neill's", "quoted"]),
        ("wi-fi usb3.0 3.0usb a.b 1:2", ["wi", "fi", "usb3.0", "3.0usb", "a.b", "1", "2"]),
        ("_x_ __ a_1", ["_x_", "a_1"]),
        ("crème brûlée", ["crème", "brûlée"]),
        ("日本 ひら カタカナ ไทย", ["日", "本", "ひ", "ら", "カタカナ", "ไทย"]),
        (
            "★gift™ 👨\u200d💼 🇩🇪 1\ufe0f\u20e3",
            ["★", "gift", "™", "👨\u200d💼", "🇩🇪", "1\ufe0f\u20e3"],
        ),
        ('18" x 18”', ["18", "x", "18"]),
        ("", []),
    ],
)
def test_texts_are_split_into_words_and_emoji(text, expected):
    assert tokens(text) == expected


def test_the_pattern_for_ascii_agrees_with_the_full_one():
    draw = random.Random(0)
    for _ in range(3000):
        text = "".join(draw.choice(ASCII_SIGNS) for _ in range(draw.randint(1, 12)))
        full = [found.group() for found in words._TOKEN.finditer(text)]
        assert tokens(text) == full, text


def test_overlong_words_are_cut_where_lucene_cuts_them():
    assert tokens("a" * 600) == ["a" * LONGEST, "a" * LONGEST, "a" * 90]
    assert tokens("é" * 300) == ["é" * LONGEST, "é" * 45]


@pytest.mark.parametrize("text", ["_" * 10**5, "é" + "_" * 10**5, "a'" * 10**5, "ö." * 10**5])
def test_long_nonsense_takes_no_longer_than_long_text(text):
    tokens(text)  # square in the length, it would take minutes


def test_words_across_the_window_of_a_long_text_stay_whole():
    text = " ".join(["don't", "6.5", "wi-fi"] * 200)
    assert tokens(text) == ["don't", "6.5", "wi", "fi"] * 200


def test_terms_are_stems_without_stop_words_and_possessives():
    assert Analyzer()("The women's SLIPPERS, with an easy-to-wash lining\u2019s") == [
        *("women", "slipper", "easi", "wash", "line"),
    ]


def test_an_analyzer_remembers_nothing_that_changes_its_answers():
    analyze = Analyzer()
    text = "Machine-washable covers; machine-washable COVERS"
    assert analyze(text) == analyze(text) == Analyzer()(text)
