from collections import Counter

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from milegpo_algo.batch import (
    Row,
    Share,
    collate,
    deal,
    guard_reference,
    microbatches,
    minibatches,
    token_slots,
)

CPU = torch.device("cpu")


def row(prompt: int, completion: int, **changes) -> Row:
    """A row of given lengths, its ids counting up."""
    return Row(
        **{
            "prompt": np.arange(1, prompt + 1),
            "completion": np.arange(1, completion + 1),
            "sampled_logprobs": None,
            "advantage": 0.5,
            **changes,
        }
    )


def rows_of(lengths) -> list[Row]:
    return [row(3, n, advantage=float(i)) for i, n in enumerate(lengths)]


def names(rows) -> Counter:
    return Counter(r.advantage for r in rows if r.counts)


lengths = st.lists(st.integers(0, 9), min_size=1, max_size=40)


@given(lengths, st.integers(1, 12), st.integers(0, 3))
def test_minibatches_hold_every_row_once_and_are_of_even_size(lengths, size, iteration):
    rows = rows_of(lengths)
    parts = minibatches(rows, size, seed=1, iteration=iteration)
    assert sum((names(part) for part in parts), Counter()) == names(rows)
    sizes = [len(part) for part in parts]
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1
    assert len(parts) == -(-len(rows) // size)


def test_minibatches_depend_on_seed_and_iteration_alone():
    rows = rows_of(range(20))
    order = [[r.advantage for r in part] for part in minibatches(rows, 8, 1, 2)]
    assert order == [[r.advantage for r in part] for part in minibatches(rows, 8, 1, 2)]
    assert order != [[r.advantage for r in part] for part in minibatches(rows, 8, 1, 3)]
    assert order != [[r.advantage for r in part] for part in minibatches(rows, 8, 2, 2)]


def test_no_rows_make_no_minibatch():
    assert minibatches([], 8, 0, 0) == []


@given(lengths, st.integers(1, 5))
def test_dealing_gives_every_row_to_one_process_and_equal_counts_to_all(lengths, world):
    rows = rows_of(lengths)
    shares = [deal(rows, world, rank) for rank in range(world)]
    assert sum((names(share) for share in shares), Counter()) == names(rows)
    assert {len(share) for share in shares} == {-(-len(rows) // world)}


def test_one_process_gets_no_fillers():
    assert all(r.counts for r in deal(rows_of(range(7)), 1, 0))


def test_dealing_by_length_evens_out_the_tokens():
    rows = rows_of([1, 2, 3, 4, 5, 6, 7, 8])
    # dealt 0 1 1 0 0 1 1 0: 1+4+5+8 = 18 = 2+3+6+7
    assert [sum(r.tokens for r in deal(rows, 2, rank)) for rank in (0, 1)] == [18, 18]


@given(st.integers(0, 40), st.integers(1, 12))
def test_microbatches_keep_the_order_and_are_of_even_size(count, size):
    pieces = microbatches(range(count), size)
    assert [i for piece in pieces for i in piece] == list(range(count))
    assert all(0 < len(piece) <= size for piece in pieces)
    assert len(pieces) == -(-count // size)


def test_collate_pads_prompts_on_the_left_and_completions_on_the_right():
    batch = collate([row(2, 1), row(3, 2, advantage=-1.0)], pad_id=9, device=CPU)
    assert batch["prompt_ids"].tolist() == [[9, 1, 2], [1, 2, 3]]
    assert batch["prompt_mask"].tolist() == [[0, 1, 1], [1, 1, 1]]
    assert batch["completion_ids"].tolist() == [[1, 9], [1, 2]]
    assert batch["completion_mask"].tolist() == [[1, 0], [1, 1]]
    assert batch["advantages"].tolist() == [0.5, -1.0]
    assert "old_per_token_logps" not in batch
    assert "ref_per_token_logps" not in batch


def test_a_row_that_does_not_count_is_masked_and_so_are_its_logprobs():
    logprobs = np.array([-1.0, -2.0], dtype=np.float32)
    filler = row(2, 2, counts=False, old_logprobs=logprobs, ref_logprobs=logprobs)
    real = row(2, 1, old_logprobs=logprobs[:1], ref_logprobs=logprobs[:1])
    batch = collate([filler, real], pad_id=0, device=CPU)
    assert batch["completion_mask"].tolist() == [[0, 0], [1, 0]]
    for name in ("old_per_token_logps", "ref_per_token_logps"):
        assert batch[name].tolist() == [[0, 0], [-1, 0]]


def test_a_batch_of_empty_completions_still_has_one_masked_place():
    batch = collate([row(2, 0)], pad_id=0, device=CPU)
    assert batch["completion_ids"].shape == (1, 1)
    assert batch["completion_mask"].tolist() == [[0]]


def test_token_slots_count_what_is_used_and_what_is_there():
    # one micro-batch: 2 rows x (3 + 4) slots, 2+4 and 3+1 used
    assert token_slots([[row(2, 4), row(3, 1)]], size=2) == (10, 14)
    assert token_slots([[row(2, 4), row(3, 1)]], size=1) == (10, 10)
    # a filler is padding throughout
    assert token_slots([[row(2, 4), row(2, 4, counts=False)]], size=2) == (6, 12)
    assert token_slots([], size=2) == (0, 0)


def test_the_reference_is_held_within_the_limit_and_cuts_are_counted():
    old = np.array([-1.0, -20.0, -1.0, -1.0, -1.0, -1.0], dtype=np.float32)
    ref = np.array([-1.5, -0.5, -19.0, -30.0, np.nan, -np.inf], dtype=np.float32)
    held, cuts = guard_reference(ref, old, limit=10.0)
    np.testing.assert_array_equal(held, np.float32([-1.5, -10.0, -19.0, -21.0, -1.0, -21.0]))
    assert cuts == 4


@given(lengths, st.integers(1, 4))
def test_shares_train_on_what_trains_and_count_everything(lengths, world):
    rows = [row(3, n, advantage=float(i), trains=i % 3 > 0) for i, n in enumerate(lengths)]
    parts = [Share.of(rows, world, rank) for rank in range(world)]
    trained = sum((names(part.rows) for part in parts), Counter())
    assert trained == Counter(r.advantage for r in rows if r.trains)
    assert {(part.tokens, part.count) for part in parts} == {(sum(lengths), len(rows))}
    assert len({len(part.rows) for part in parts}) == 1
