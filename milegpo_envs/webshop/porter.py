"""The Porter stemmer, with its author's two later departures (bli -> ble, logi -> log).

M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980; the departures are listed at
https://tartarus.org/martin/PorterStemmer. Words are lower-case; letters outside a-z count as
consonants.
"""

import re

_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "logi": "log",
}
_STEP_3 = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_STEP_4 = dict.fromkeys(
    (
        *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion"),
        *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
    ),
    "",
)


def _suffixes(rules: dict[str, str]) -> re.Pattern[str]:
    """The longest of the suffixes at the end of a word."""
    return re.compile("(?:" + "|".join(sorted(rules, key=len, reverse=True)) + r")\Z")


_FIND_2, _FIND_3, _FIND_4 = _suffixes(_STEP_2), _suffixes(_STEP_3), _suffixes(_STEP_4)


def stem(word: str) -> str:
    """The stem of a lower-case word; words of one or two letters are their own."""
    if len(word) <= 2:
        return word
    word = _past_and_ing(_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _FIND_2, _STEP_2, 0)
    word = _replaced(word, _FIND_3, _STEP_3, 0)
    word = _replaced(word, _FIND_4, _STEP_4, 1)
    return _final_letters(word)


def _shape(word: str) -> str:
    """The word in c (consonant) and v (vowel); y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How often a vowel is followed by a consonant: m of [C](VC)^m[V]."""
    return _shape(word).count("vc")


def _short_end(word: str) -> bool:
    """Consonant, vowel, consonant other than w, x, y: the condition *o."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_and_ing(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix) and "v" in _shape(word[: -len(suffix)]):
            return _mended(word[: -len(suffix)])
    return word


def _mended(word: str) -> str:
    """What is left after -ed or -ing, made a word again: "hopp" -> "hop", "fil" -> "file"."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _short_end(word) else word


def _replaced(word: str, find: re.Pattern[str], rules: dict[str, str], above: int) -> str:
    """Replace the longest known suffix if the measure of what precedes it is above a number."""
    found = find.search(word)
    if found is None:
        return word
    rest, suffix = word[: found.start()], found.group()
    if suffix == "ion" and not rest.endswith(("s", "t")):
        return word
    return rest + rules[suffix] if _measure(rest) > above else word


def _final_letters(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _short_end(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
