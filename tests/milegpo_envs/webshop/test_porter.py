import pytest

from milegpo_envs.webshop.porter import stem


@pytest.mark.parametrize(
    ("word", "expected"),
    [line.split() for line in """
        caresses caress
        ponies poni
        cats cat
        feed feed
        agreed agre
        plastered plaster
        motoring motor
        sing sing
        conflated conflat
        troubled troubl
        hopping hop
        falling fall
        filing file
        happy happi
        sky sky
        relational relat
        rational ration
        conformably conform
        archaeology archaeolog
        vietnamization vietnam
        triplicate triplic
        electrical electr
        adoption adopt
        replacement replac
        probate probat
        cease ceas
        controlling control
        is is
    """.strip().splitlines()],
)  # fmt: skip
def test_words_have_porters_stems(word, expected):
    assert stem(word) == expected
