import pytest

from milegpo_envs.errors import DataMissing
from milegpo_envs.webshop import nouns
from milegpo_envs.webshop.catalogue import load_catalogue
from milegpo_envs.webshop.generated import write_official
from milegpo_envs.webshop.official import OfficialCatalogue


@pytest.fixture
def untagged(monkeypatch):
    def refuse():
        raise DataMissing("no tagger")

    monkeypatch.setattr(nouns, "_tagger", refuse)


def test_the_generated_shop_needs_no_tagger(untagged):
    shop = load_catalogue(None)
    found = nouns.open_nouns(shop)
    assert all(found(shop[i].name) for i in range(50))


def test_official_titles_are_tagged_once(tmp_path, monkeypatch):
    pytest.importorskip("spacy", reason="spaCy tags titles: pip install 'milegpo[webshop]'")
    write_official(tmp_path, 8)
    shop = OfficialCatalogue(tmp_path, "small")
    first = [nouns.open_nouns(shop)(shop[i].name) for i in range(8)]
    nouns.open_nouns.cache_clear()
    monkeypatch.setattr(nouns, "tagged", lambda title: pytest.fail("tagged again"))
    assert [nouns.open_nouns(shop)(shop[i].name) for i in range(8)] == first
    assert "dress" in first[0]


def test_tags_are_those_of_the_whole_model():
    spacy = pytest.importorskip("spacy", reason="spaCy: pip install 'milegpo[webshop]'")
    model = next(m for m in nouns.MODELS if spacy.util.is_package(m))
    whole = spacy.load(model)
    for title in ("Perirow wool socks for hiking", "USB-C cable, 6ft, braided (2-Pack)"):
        tokens = [t.text.lower() for t in whole(title) if t.pos_ in ("PNOUN", "NOUN", "PROPN")]
        assert list(nouns.tagged(title)) == tokens


def test_a_missing_tagger_names_its_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "spacy", None)
    nouns._tagger.cache_clear()
    try:
        with pytest.raises(DataMissing, match=r"pip install 'milegpo\[webshop\]'"):
            nouns.tagged("socks")
    finally:
        nouns._tagger.cache_clear()
