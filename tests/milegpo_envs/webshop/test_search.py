import pytest

from milegpo_envs.webshop import storage
from milegpo_envs.webshop.catalogue import MemoryCatalogue, load_catalogue
from milegpo_envs.webshop.generated import GeneratedCatalogue
from milegpo_envs.webshop.search import SearchIndex, kept_length, open_index
from tests.milegpo_envs.webshop.real_shop import FOLDER, needs_real_shop, recorded
from tests.milegpo_envs.webshop.slow_search import SlowSearch, as_kept_in_a_byte

SMALL = GeneratedCatalogue(120, None)


@needs_real_shop
def test_every_recorded_list_of_lucene_is_equal_order_included():
    catalogue = load_catalogue(FOLDER)
    index = open_index(catalogue)
    lists = recorded("lucene_top50.jsonl.gz")
    assert len(lists) == 778
    for query in lists:
        found = [catalogue[i].asin for i in index.top(query["query"])]
        assert found == query["top"], query["query"]


@pytest.mark.parametrize("few", [0, 1 << 16])  # the way of long lists, and that of short ones
@pytest.mark.parametrize("i", range(0, 120, 17))
def test_lists_are_those_of_the_formula(i, few, monkeypatch):
    monkeypatch.setattr("milegpo_envs.webshop.search._FEW", few)
    index, slow = SearchIndex.build(SMALL), SlowSearch(list(SMALL))
    for query in (SMALL[i].instruction, SMALL[i].query, f"{SMALL[i].name} {SMALL[i].name}"):
        assert index.top(query) == slow.top(query)


def test_lengths_keep_what_a_byte_keeps():
    assert all(kept_length(n) == as_kept_in_a_byte(n) for n in range(5000))


def test_equal_scores_are_ordered_by_asin():
    twins = [SMALL[3].__class__(**{**vars(SMALL[3]), "asin": asin}) for asin in ("B2", "B1", "B3")]
    assert SearchIndex.build(MemoryCatalogue("twins", twins, "0")).top("shirt") == [1, 0, 2]


@pytest.mark.parametrize("query", ["", "the of", "zzzzqq", "\ud800", "\0", "_" * 5000, "é" * 999])
def test_words_that_no_product_has_find_nothing(query):
    assert SearchIndex.build(SMALL).top(query) == []


def test_a_stored_index_answers_as_one_in_memory(tmp_path):
    stored = SearchIndex.build(SMALL, tmp_path)
    again = SearchIndex.build(SMALL, tmp_path)
    for product in list(SMALL)[::10]:
        expected = SearchIndex.build(SMALL).top(product.name)
        assert stored.top(product.name) == again.top(product.name) == expected


def test_a_damaged_index_is_built_again(tmp_path):
    SearchIndex.build(SMALL, tmp_path)
    [folder] = tmp_path.iterdir()
    (folder / "weights.npy").write_bytes((folder / "weights.npy").read_bytes()[:-4])
    assert storage.open_store(folder) is None
    assert SearchIndex.build(SMALL, tmp_path).top("dress") == SearchIndex.build(SMALL).top("dress")
    assert [f.name for f in tmp_path.iterdir()] == [folder.name]


def test_an_empty_shop_can_be_searched(tmp_path):
    assert SearchIndex.build(MemoryCatalogue("empty", [], "0"), tmp_path).top("dress") == []
