from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from baselines.tiny_policy import train_tokenizer
from milegpo_algo.rollout.words import WordTokeniser
from tests.milegpo_algo.tiny import corpus, tiny_tokenizer

GPT2 = tiny_tokenizer()
QWEN = train_tokenizer(corpus(), 400)


def joining_tokenizer() -> Tokenizer:
    """BPE over whole texts: tokens reach across blanks."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.decoder = decoders.BPEDecoder()
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False)
    tokenizer.train_from_iterator(["go to the hall", "it is a bc Def"] * 20, trainer)
    return tokenizer


def metaspace_tokenizer() -> Tokenizer:
    """SentencePiece's way: a blank is put before every text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False)
    tokenizer.train_from_iterator(["go to the hall", "it is a bc Def"] * 20, trainer)
    return tokenizer


def whole(tokenizer):
    if isinstance(tokenizer, Tokenizer):
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    return lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]


BY_WORDS = {
    "gpt2": WordTokeniser(whole(GPT2), checked=0),
    "qwen": WordTokeniser(whole(QWEN), checked=0),
}
METASPACE = WordTokeniser(whole(metaspace_tokenizer()), checked=0)
PIECES = st.sampled_from(
    [
        " ",
        "  ",
        "\n",
        "\t",
        "\r\n",
        "go",
        "to",
        "1",
        "22",
        "'s",
        "<action>",
        "<|im_end|>",
        "é",
        "中",
    ]
) | st.text(max_size=4)


@pytest.mark.parametrize("name", BY_WORDS)
@given(text=st.lists(PIECES, max_size=12).map("".join))
def test_ids_are_those_of_the_whole_text(name, text):
    by_words = BY_WORDS[name]
    assert by_words.by_words
    assert by_words(text) == tuple(by_words.tokenise(text))


def test_a_tokenizer_that_does_not_cut_at_blanks_is_given_whole_texts():
    tokenise = whole(joining_tokenizer())
    by_words = WordTokeniser(tokenise)
    assert not by_words.by_words
    assert by_words("go to the hall") == tuple(tokenise("go to the hall"))


@given(text=st.lists(st.sampled_from([" ", "go", "to", "hall", "▁", "x"]), max_size=9).map("".join))
def test_a_blank_before_every_text_changes_nothing(text):
    assert METASPACE(text) == tuple(METASPACE.tokenise(text))


def test_a_difference_in_the_first_texts_ends_the_use_of_words():
    plain = whole(GPT2)
    by_words = WordTokeniser(lambda text: [7] if text == "go to hall" else plain(text))
    assert by_words.by_words
    assert by_words("go to hall") == (7,)
    assert not by_words.by_words


def test_a_word_is_tokenised_once_and_memory_is_bounded():
    asked = []

    def tokenise(text):
        asked.append(text)
        return [ord(c) for c in text]

    by_words = WordTokeniser(tokenise, capacity=4, checked=0)
    asked.clear()
    for _ in range(3):
        by_words("a b b c")
    assert asked == ["a", " b", " c"]
    for i in range(50):
        by_words(f"a b{i} c")
    assert len(by_words._words) <= 4 + 3
