r"""Text to index terms, as Lucene 8's English analyzer makes them.

Words of UAX#29 (https://unicode.org/reports/tr29, with Lucene's rules for emoji and for scripts
without spaces), the possessive 's stripped, lower case, 33 stop words left out, Porter stems.

Most texts are ASCII, and white space always ends a word: so a text is cut at white space, the
pieces are analysed by a simple pattern where they are ASCII, and remembered.
"""

import re

import regex

from milegpo_envs.webshop.porter import stem

STOP_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is"),
        *("it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there"),
        *("these", "they", "this", "to", "was", "will", "with"),
    )
)

LONGEST = 255
"""Longer words are cut after so many characters, as Lucene's scanner buffer does."""

_REMEMBERED = 1 << 18  # pieces of text whose terms are kept

# X, E, K, N, L, H stand for the classes with what may follow a character of theirs (rule WB4).
_X = r"[\p{WB=Format}\p{WB=Extend}\p{WB=ZWJ}]*+"
_E = rf"(?:\p{{WB=ExtendNumLet}}{_X})"
_K = rf"(?:\p{{WB=Katakana}}{_X})"
_N = rf"(?:[\p{{WB=Numeric}}\uff10-\uff19]{_X})"
_L = rf"(?:[\p{{WB=ALetter}}\p{{WB=Hebrew_Letter}}]{_X})"
_H = rf"(?:\p{{WB=Hebrew_Letter}}{_X})"
_MID_BOTH = r".'\u2018\u2019\u2024\ufe52\uff07\uff0e"
_MID_LETTER = rf"(?:[:\u00b7\u0387\u05f4\u2027\ufe13\ufe55\uff1a{_MID_BOTH}]{_X})"
_MID_NUMBER = (
    r"(?:[,;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b"
    rf"{_MID_BOTH}]{_X})"
)
_RUN = (
    rf"(?:{_K}(?:{_E}*+{_K})*"
    rf"|(?:{_H}(?:'{_X}|\"{_X}{_H})"
    rf"|{_N}(?:(?:{_E}*+|{_MID_NUMBER}){_N})*"
    rf"|{_L}(?:(?:{_E}*+|{_MID_LETTER}){_L})*)+)"
)
_WORD = rf"(?:(?<!\p{{WB=ExtendNumLet}}){_E}++)?{_RUN}(?:{_E}++{_RUN})*{_E}*+"

# Emoji (UTS#51). Lucene 8 has the pictographs of Emoji 11, of which later versions took some away.
_PICTURE = (
    r"[[\p{Emoji}\p{Extended_Pictographic}\u2600-\u2605\u2607-\u2612\u2616-\u2685\u2690-\u2705"
    r"\u2708-\u2712\u2763-\u2767]--[0-9#*]--\p{Regional_Indicator}--\p{Emoji_Modifier}]"
)
# What may follow within a character: no presentation selector, no joiner before another picture.
_XS = (
    r"(?:[[\p{WB=Format}\p{WB=Extend}]--[\ufe0e\ufe0f]]"
    rf"|\u200d(?!\u200d*(?:{_PICTURE}|\p{{Emoji_Modifier}})))*"
)
_ONE = (
    rf"(?:(?:\u200d*\p{{Emoji_Modifier_Base}}{_XS})?\p{{Emoji_Modifier}}{_XS}"
    rf"|\u200d*{_PICTURE}{_XS}\ufe0f?)"
)
_EMOJI = (
    rf"{_ONE}(?:[\U000e0020-\U000e007e]+\U000e007f|(?:\u200d{_ONE})*)"
    rf"|[0-9#*]{_XS}\ufe0f?\u20e3{_XS}"
    rf"|(?:\p{{Regional_Indicator}}{_X}){{2}}"
)
_TOKEN = regex.compile(
    rf"(?V1){_EMOJI}|{_WORD}|(?:\p{{Line_Break=SA}}{_X})+|\p{{Script=Han}}{_X}"
    rf"|\p{{Script=Hiragana}}{_X}"
)
_ASCII_TOKEN = re.compile(
    r"(?:(?<!_)_+)?[A-Za-z0-9][A-Za-z0-9_]*"
    r"(?:(?:(?<=[A-Za-z])[.':](?=[A-Za-z])|(?<=[0-9])[.',;](?=[0-9]))[A-Za-z0-9_]+)*"
)


def tokens(text: str) -> list[str]:
    """Split a text into words; what is neither word, number nor emoji is left out."""
    pattern = _ASCII_TOKEN if text.isascii() else _TOKEN
    if len(text) <= LONGEST:
        return [found.group() for found in pattern.finditer(text)]
    out: list[str] = []
    place = 0
    while place < len(text):
        found = pattern.search(text, place, place + LONGEST)
        if found is None:
            place += LONGEST
            continue
        # What follows the window may belong to a word that begins inside it.
        found = pattern.match(text, found.start(), found.start() + LONGEST) or found
        out.append(found.group())
        place = found.end()
    return out


def term(token: str) -> str | None:
    """The index term of a word, None for a stop word."""
    if len(token) > 2 and token[-1] in "sS" and token[-2] in "'\u2019\uff07":
        token = token[:-2]
    word = token.lower()
    return None if word in STOP_WORDS else stem(word)


class Analyzer:
    """Terms of texts, remembering those of pieces seen before."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}

    def __call__(self, text: str) -> list[str]:
        """The terms of a text, in order, repeated as often as they occur."""
        known = self._known
        out: list[str] = []
        for piece in text.split():
            terms = known.get(piece)
            if terms is None:
                terms = tuple(t for token in tokens(piece) if (t := term(token)) is not None)
                if len(known) >= _REMEMBERED:
                    known.clear()
                if len(piece) <= LONGEST:
                    known[piece] = terms
            out += terms
        return out
