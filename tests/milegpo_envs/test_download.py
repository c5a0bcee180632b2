import hashlib
import io
import stat
import zipfile

import pytest

from milegpo_envs import download
from milegpo_envs.download import DownloadFailed, Ledger, RemoteFile, fetch, sha256_of, unpack
from tests.milegpo_envs.range_server import serving

CONTENT = bytes(range(256)) * 4000  # about 1 MB
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch):
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)


@pytest.fixture
def site():
    with serving({"file.bin": CONTENT}) as site:
        yield site


def remote(site, **known):
    return RemoteFile(f"{site.url}/file.bin", **{"sha256": SHA256, **known})


def test_a_file_is_fetched_once_and_checked(site, tmp_path):
    seen = []
    path = fetch(remote(site), tmp_path / "new", lambda *a: seen.append(a))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT), "file.bin")
    assert fetch(remote(site), tmp_path / "new") == path
    assert site.seen == [None]
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


def test_a_connection_that_breaks_goes_on_where_it_stopped(site, tmp_path):
    site.cut = 300_000
    assert fetch(remote(site), tmp_path).read_bytes() == CONTENT
    assert site.seen == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]


def test_a_later_run_resumes_what_an_earlier_one_left(site, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:777])
    assert fetch(remote(site), tmp_path).read_bytes() == CONTENT
    assert site.seen == ["bytes=777-"]


def test_a_whole_part_is_not_fetched_again(site, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert fetch(remote(site), tmp_path).read_bytes() == CONTENT


def test_a_server_without_ranges_starts_over(site, tmp_path):
    site.ranges = False
    (tmp_path / "file.bin.part").write_bytes(b"x" * 777)
    assert fetch(remote(site), tmp_path).read_bytes() == CONTENT


def test_a_server_that_says_no_length_is_believed_up_to_the_checksum(site, tmp_path):
    site.length = False
    assert fetch(remote(site), tmp_path).read_bytes() == CONTENT


def test_a_file_that_changed_on_the_server_is_started_over(site, tmp_path):
    site.cut = 500_000
    site.files["file.bin"] = b"old" + CONTENT
    with pytest.raises(DownloadFailed):  # three bytes too many
        fetch(remote(site, size=len(CONTENT)), tmp_path)
    (tmp_path / "file.bin.part").write_bytes(b"old" + CONTENT[:777])
    (tmp_path / "file.bin.part.json").write_text('{"validator": "\\"zero\\""}')
    site.files["file.bin"], site.cut = CONTENT, None
    assert fetch(remote(site), tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_names_both_and_leaves_nothing(site, tmp_path):
    with pytest.raises(DownloadFailed, match=f"{SHA256}.*{'0' * 64}"):
        fetch(remote(site, sha256="0" * 64), tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DownloadFailed, match="The download was thrown away"):
        fetch(remote(site, size=len(CONTENT) + 1), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_copied_by_hand_is_taken_if_it_is_the_right_one(site, tmp_path):
    (tmp_path / "file.bin").write_bytes(CONTENT)
    assert fetch(remote(site), tmp_path).read_bytes() == CONTENT
    (tmp_path / "file.bin").write_bytes(CONTENT[:-1])
    with pytest.raises(DownloadFailed, match="Delete it"):
        fetch(remote(site), tmp_path)
    assert site.seen == []


def test_a_refusal_and_no_connection_say_what_to_do(site, tmp_path):
    with pytest.raises(DownloadFailed, match=r"404.*copy it to"):
        fetch(RemoteFile(f"{site.url}/other.bin"), tmp_path)
    with pytest.raises(DownloadFailed, match=r"No connection.*Run this again"):
        fetch(RemoteFile("http://127.0.0.1:9/file.bin"), tmp_path)
    site.status = 503
    with pytest.raises(DownloadFailed, match="503"):
        fetch(remote(site), tmp_path)


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return path


def test_an_archive_is_unpacked_and_an_interrupted_one_made_good(tmp_path):
    archive = zipped(tmp_path / "a.zip", {"a/one": "1", "a/b/two": "22", "three": "333"})
    seen = []
    assert unpack(archive, tmp_path / "out", lambda *a: seen.append(a)) == 3
    assert seen == [(1, 3, "a.zip"), (2, 3, "a.zip"), (3, 3, "a.zip")]
    (tmp_path / "out" / "three").write_text("3x3")  # same size, other content
    (tmp_path / "out" / "a" / "one").unlink()
    kept = (tmp_path / "out" / "a" / "b" / "two").stat().st_mtime_ns
    unpack(archive, tmp_path / "out")
    found = {p.name: p.read_text() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert found == {"one": "1", "two": "22", "three": "333"}
    assert (tmp_path / "out" / "a" / "b" / "two").stat().st_mtime_ns == kept


def test_only_wanted_files_are_unpacked(tmp_path):
    archive = zipped(tmp_path / "a.zip", {"keep/one": "1", "drop/two": "2"})
    assert unpack(archive, tmp_path / "out", wanted=lambda name: name.startswith("keep")) == 1
    assert not (tmp_path / "out" / "drop").exists()


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "a\\..\\..\\evil", "c:evil"])
def test_an_archive_that_reaches_outside_is_refused_whole(tmp_path, name):
    archive = zipped(tmp_path / "a.zip", {"good": "1", name: "2"})
    with pytest.raises(DownloadFailed, match="do not trust"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_links_in_an_archive_and_on_the_way_are_refused(tmp_path):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc")
    with pytest.raises(DownloadFailed, match="link"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path)
    with pytest.raises(DownloadFailed, match="outside"):
        unpack(zipped(tmp_path / "b.zip", {"a/evil": "1"}), tmp_path / "out")


def test_a_truncated_or_damaged_archive_is_named(tmp_path):
    whole = zipped(tmp_path / "a.zip", {"one": "1" * 5000, "two": "2"}).read_bytes()
    for broken in (whole[:-30], b"<html>not found</html>", b""):
        (tmp_path / "a.zip").write_bytes(broken)
        with pytest.raises(DownloadFailed, match="damaged"):
            unpack(tmp_path / "a.zip", tmp_path / "out")
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        archive.writestr("one", "abcdefgh")
    (tmp_path / "a.zip").write_bytes(stored.getvalue().replace(b"abcdefgh", b"abcdXfgh"))
    with pytest.raises(DownloadFailed, match="damaged"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "out" / "one").exists()


def test_a_ledger_remembers_the_first_checksum(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(CONTENT)
    assert Ledger(tmp_path).sha256("file.bin") is None
    Ledger(tmp_path).record(RemoteFile("http://x/file.bin"), path)
    assert Ledger(tmp_path).sha256("file.bin") == SHA256 == sha256_of(path)
    (tmp_path / "downloads.json").write_text("{")
    with pytest.raises(Exception, match="damaged"):
        Ledger(tmp_path)
