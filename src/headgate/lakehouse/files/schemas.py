"""API schemas of files and uploads."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from headgate.contracts.volume_paths import MAX_CHARACTERS, check_path
from headgate.kit.patterns import TextPattern
from headgate.kit.request_models import Input
from headgate.organization.members.schemas import Named

PathText = Annotated[
    str, Field(min_length=1, max_length=MAX_CHARACTERS, examples=["2026/march.csv"]), AfterValidator(check_path)
]
Sum = Annotated[
    str,
    TextPattern("^[0-9a-f]{64}$", "must be a SHA-256 checksum: 64 lowercase hexadecimal digits"),
    Field(examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]),
]


class FileOut(BaseModel):
    """A file of a volume."""

    id: str = Field(examples=["fil_01k6x3v9c2m4n8p0q7rs"], description="Changes with each replacement")
    path: str = Field(examples=["2026/march.csv"])
    size: int = Field(description="In bytes")
    sha256: str = Field(description="The SHA-256 checksum; also its ETag")
    media_type: str = Field(examples=["text/csv"], description="The media type of downloads")
    created_at: datetime
    created_by: Named | None = Field(description="Who uploaded it; null for a removed member")


class FilePage(BaseModel):
    """A page of files, in path order."""

    items: list[FileOut]
    folders: list[str] = Field(
        examples=[["2026/"]], description="With a delimiter: the common prefixes on this page, up to the delimiter"
    )
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")


class FileDeleted(BaseModel):
    """A deleted file."""

    id: str = Field(examples=["fil_01k6x3v9c2m4n8p0q7rs"])
    path: str = Field(examples=["2026/march.csv"])


class UploadBegin(Input):
    """A resumable upload to start."""

    path: PathText
    size: int = Field(ge=0, le=1 << 60, examples=[5_000_000_000], description="In bytes")
    media_type: str | None = Field(None, max_length=200, examples=["text/csv"])
    overwrite: bool = Field(default=False, description="Whether an existing file may be replaced")


class UploadFinish(Input):
    """Completes an upload."""

    sha256: Sum | None = Field(None, description="The checksum of the whole file; verified if given")


class UploadOut(BaseModel):
    """An upload in progress."""

    id: str = Field(examples=["upl_01k6x3v9c2m4n8p0q7rs"])
    volume: str = Field(examples=["vol_01k6x3v9c2m4n8p0q7rs"])
    path: str = Field(examples=["2026/march.csv"])
    size: int = Field(description="The total size in bytes")
    offset: int = Field(description="How many bytes are stored; the next part starts there. Also in `Upload-Offset`")
    overwrite: bool
    expires_at: datetime = Field(description="When the upload expires")


class UploadList(BaseModel):
    """The caller's own uploads to a volume."""

    items: list[UploadOut]


class UploadCancelled(BaseModel):
    """A cancelled upload."""

    id: str = Field(examples=["upl_01k6x3v9c2m4n8p0q7rs"])
