"""Token ids of a text from those of its words, each of which is tokenised once.

Prompts of an environment say the same few words over and over. Tokenizers of today cut a text into
words before anything else and never join across a single blank between two others: a text's ids
are those of its words, laid end to end. A tokenizer has to show that on trial texts and on the
first prompts; one that cuts elsewhere, and any text with other white space around its blanks, is
tokenised as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Tokenise = Callable[[str], Sequence[int]]

# Texts on which a tokenizer has to show that it cuts at single blanks.
_TRIALS = (
    "a bc Def GHI jKl",
    "x1 22 333 4,444 5.5 -6 7% 8th",
    "it's we'll 'tis don 't I 'm ( a ) [ b ] { c }",
    "<a> </a> <|b|> &c; #d @e $f ^g *h* _i_ ~j `k` |l| \\m /n = o + p",
    "é ü ñ ß Ж д א ب 中 文字 かな 한글 🙂 👩‍🚀 ① ﬁ",
    "one.\ntwo three\n\nfour: five; six, seven! eight? \"nine\" 'ten'",
    "You see a cabinet 1, a drawer 12, and a desk lamp 1.",
    "<think> so </think> <action>go to shelf 1</action>",
    "s' S x- -y z_ 0x1F a.b.c d/e f\\g h:i",
)


class WordTokeniser:
    """Tokenises texts word by word where that gives the same ids.

    Args:
        tokenise: of a whole text, without special tokens around it; a function of the text.
        capacity: words remembered; when full, all are forgotten.
        checked: texts, the first ones, that are compared with their whole; a difference ends the
            use of words for good.
    """

    def __init__(self, tokenise: Tokenise, capacity: int = 100_000, checked: int = 64) -> None:
        self.tokenise, self.capacity, self.checked = tokenise, capacity, checked
        self._words: dict[
            str, tuple[int, ...]
        ] = {}  # as they stand, the blank before them included
        self.by_words = all(self._agree(text) for text in _TRIALS)

    def __call__(self, text: str) -> tuple[int, ...]:
        """Token ids of a text."""
        if not self.by_words:
            return tuple(self.tokenise(text))
        if self.checked > 0:
            self.checked -= 1
            self.by_words = self._agree(text)
            return tuple(self.tokenise(text))
        ids = self._joined(text)
        return tuple(self.tokenise(text)) if ids is None else ids

    def _agree(self, text: str) -> bool:
        ids = self._joined(text)
        return ids is None or ids == tuple(self.tokenise(text))

    def _joined(self, text: str) -> tuple[int, ...] | None:
        """Ids of the words laid end to end; None where white space is not single blanks.

        Words keep the blank before them. What ends a word, or begins the next, must not be white
        space itself, for a run of white space is cut by rules of its own.
        """
        first, *rest = text.split(" ")
        if not rest or not first or first[-1].isspace():
            return None
        last = rest.pop()
        if not last or last[0].isspace():
            return None
        if len(self._words) > self.capacity:
            self._words.clear()
        ids = list(self._ids_of(first))
        for word in rest:
            own = self._words.get(" " + word)
            if own is None:
                if not word or word[0].isspace() or word[-1].isspace():
                    return None
                own = self._ids_of(" " + word)
            ids += own
        ids += self._ids_of(" " + last)
        return tuple(ids)

    def _ids_of(self, piece: str) -> tuple[int, ...]:
        known = self._words.get(piece)
        if known is None:
            known = self._words[piece] = tuple(self.tokenise(piece))
        return known
