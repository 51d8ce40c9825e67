"""A table's own FileIO opens, creates and deletes its own files and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark_guard import java_programs

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

Ask = Callable[..., list[str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A warehouse with a table, its metadata, its neighbours and links that lead out."""
    for folder in ("tables/1/data", "tables/1/metadata", "tables/10", "tables/2", "metadata/1", "metadata/2"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_text(f"in {folder}")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "tables/1/link").symlink_to(tmp_path / "secret")
    (tmp_path / "tables/1/out").symlink_to(tmp_path / "tables/2")
    (tmp_path / "tables/1/nowhere").symlink_to(tmp_path / "nothing" / "there")
    return tmp_path


@pytest.fixture
def ask(place: Path, classpath: str) -> Ask:
    """Send lines to the FileIO of table 1."""

    def asked(*lines: str, root: str = "file:{}/tables/1", metadata: str = "file:{}/metadata/1") -> list[str]:
        given = "\n".join(line.replace("{}", str(place)) for line in lines)
        arguments = (root.format(place), metadata.format(place))
        return java_programs.run("FileIoProbe", classpath, *arguments, given=given).splitlines()

    return asked


def test_its_own_files_in_every_spelling(ask: Ask, place: Path) -> None:
    answers = ask(
        "read {}/tables/1/data/f",
        "read file:{}/tables/1/data/f",
        "read file://{}/tables/1/data/f",
        "read file:{}/tables/1//data/f",
        "read-length file:{}/tables/1/data/f",
        "read file:{}/metadata/1/f",
        "write file:{}/tables/1/data/new",
        "write file:{}/tables/1/data/deep/er/a=b%2Fc/x%20y+z",
        "list file:{}/tables/1/data",
        "delete file:{}/tables/1/data/new",
        "delete-all file:{}/tables/1/data/f file:{}/tables/1/metadata/f",
    )
    assert answers[:6] == ["content in tables/1/data"] * 5 + ["content in metadata/1"]
    assert answers[6:8] == ["written"] * 2
    assert answers[8] == "listed f,new,x%20y+z"
    assert answers[9:] == ["deleted"] * 2
    assert (place / "tables/1/data/deep/er/a=b%2Fc/x%20y+z").read_text() == "new"
    assert not (place / "tables/1/data/f").exists()


OUTSIDE = (
    "{}/secret",
    "file:{}/tables/2/f",
    "file:{}/tables/10/f",
    "file:{}/tables/1",
    "file:{}/tables",
    "file:{}/metadata/2/f",
    "file:{}/tables/1/../2/f",
    "file:{}/tables/1/data/../../../secret",
    "file:{}/tables/1/./../2/f",
    "file:{}/tables/1/%2e%2e/2/f",
    "file:{}/tables/1/%2E%2E%2F2/f",
    "file:{}/tables/1/%252e%252e/2/f",
    "file:{}/tables/1/..%2f..%2fsecret",
    "file:{}/tables/1\\..\\2\\f",
    "file:{}/tables/1/link",
    "file:{}/tables/1/out/f",
    "file:{}/tables/1/out/new",
    "file:{}/tables/1/nowhere",
    "file://host{}/tables/1/data/f",
    "hdfs:{}/tables/1/data/f",
    "http://example.invalid{}/tables/1/data/f",
    "s3://bucket{}/tables/1/data/f",
    "jar:file:{}/tables/1/data/f",
    "tables/1/data/f",
    "/etc/passwd",
    "file:/etc/passwd",
)


def test_nothing_outside(ask: Ask, place: Path) -> None:
    before = {path: path.read_text() for path in place.rglob("*") if path.is_file()}
    verbs = ("read", "open", "create", "write", "delete", "delete-all")
    lines = [f"{verb} {location}" for location in OUTSIDE for verb in verbs]
    lines += [f"list {location}" for location in OUTSIDE if location != "file:{}/tables/1"]
    answers = ask(*lines)
    assert len(answers) == len(lines)
    assert [(line, one) for line, one in zip(lines, answers, strict=True) if not one.startswith("refused ")] == []
    assert str(place) not in "".join(answers)
    assert {path: path.read_text() for path in place.rglob("*") if path.is_file()} == before


def test_metadata_is_read_only_also_inside_the_root(ask: Ask, place: Path) -> None:
    lines = [f"{verb} file:{{}}/metadata/1/f" for verb in ("write", "create", "delete", "delete-all")]
    inside = [line.replace("/metadata/1", "/tables/1/metadata") for line in lines]
    assert all(one.startswith("refused ") for one in ask(*lines))
    answers = ask(*inside, "read file:{}/tables/1/metadata/f", metadata="file:{}/tables/1/metadata")
    assert all(one.startswith("refused ") for one in answers[:-1])
    assert answers[-1] == "content in tables/1/metadata"
    assert (place / "metadata/1/f").read_text() == "in metadata/1"


def test_one_bad_location_deletes_nothing(ask: Ask, place: Path) -> None:
    assert ask("delete-all file:{}/tables/1/data/f file:{}/tables/2/f")[0].startswith("refused ")
    assert (place / "tables/1/data/f").exists()


def test_folders_are_never_deleted(ask: Ask, place: Path) -> None:
    assert all(
        one.startswith("refused ")
        for one in ask("delete-prefix file:{}/tables/1", "delete-prefix file:{}/tables/1/data")
    )
    assert (place / "tables/1/data/f").exists()


def test_a_listing_holds_nothing_of_a_neighbour(ask: Ask) -> None:
    answers = ask("list file:{}/tables/1/data/", "list file:{}/tables/1/metadata")
    assert answers == ["listed f", "listed f"]


@pytest.mark.parametrize("root", ["file:/", "/", "s3://bucket", "s3://bucket/", "relative/folder", ""])
def test_a_root_is_never_a_whole_store(classpath: str, root: str) -> None:
    with pytest.raises(AssertionError, match="HEADGATE"):
        java_programs.run("FileIoProbe", classpath, root, "file:/some/folder")


def test_object_stores_by_prefix(ask: Ask) -> None:
    answers = ask(
        "create s3://bucket/tables/1/data/x",
        "create s3a://bucket/tables/1/data/x",
        "create s3://bucket/tables/10/data/x",
        "create s3://bucket/tables/1/../2/x",
        "create s3://other/tables/1/data/x",
        "create s3://bucket.tables/1/data/x",
        "create s3://bucket//tables/1/data/x",
        "create s3:///bucket/tables/1/data/x",
        "open s3://bucket/metadata/1/v1.json",
        "create s3://bucket/metadata/1/v1.json",
        "open file:/bucket/tables/1/data/x",
        root="s3://bucket/tables/1",
        metadata="s3://bucket/metadata/1",
    )
    # Inside: it goes on to the store's own FileIO, for which this class path has no client.
    assert [one.split()[0] for one in answers] == [
        "failed", "failed", *["refused"] * 6, "failed", "refused", "refused",
    ]  # fmt: skip
