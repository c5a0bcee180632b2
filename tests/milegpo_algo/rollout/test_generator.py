from milegpo_algo.rollout.generator import sampling_key


def test_a_key_is_the_same_in_every_process():
    # blake2b of "7\0" "3\0" "q\0" "2\0" "5" in 8 bytes, little end first
    assert sampling_key(7, 3, "q", 2, 5) == 0x1C64024B978A7F7D


def test_each_part_of_a_row_s_name_changes_its_key():
    keys = {
        sampling_key(*name)
        for name in [
            (0, 0, "q", 0, 0),
            (1, 0, "q", 0, 0),
            (0, 1, "q", 0, 0),
            (0, 0, "r", 0, 0),
            (0, 0, "q", 1, 0),
            (0, 0, "q", 0, 1),
            (0, 0, "q\0001", 0, 0),
        ]
    }
    assert len(keys) == 7


def test_a_key_fits_64_bits():
    assert all(0 <= sampling_key(0, 0, "q", 0, t) < 2**64 for t in range(100))
