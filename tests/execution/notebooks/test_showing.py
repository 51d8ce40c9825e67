"""What a cell shows is kept: pictures as files beside it, everything else as text."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.execution.notebooks.outputs import Outputs
from headgate.execution.notebooks.program import display as showing

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


class Picture:
    """Gives itself as a picture, as those of Pillow do."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def _repr_png_(self) -> Any:
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


def figure() -> Any:
    """A figure, as far as it is asked for anything."""

    def savefig(content: Any, format: str) -> None:  # noqa: A002 - matplotlib's name
        assert format == "png"
        content.write(PNG)

    kind = type("Figure", (), {"savefig": staticmethod(savefig), "__module__": "matplotlib.figure"})
    return kind()


@pytest.fixture
def pyplot(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """The figures that pyplot holds."""
    held: dict[int, Any] = {}
    module = SimpleNamespace(get_fignums=lambda: list(held), figure=held.__getitem__, close=lambda _: held.clear())
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", module)
    return held


@pytest.mark.parametrize("content", [PNG, (PNG, {"width": 1})])
def test_a_value_that_is_a_picture_is_kept_as_one(tmp_path: Path, content: Any) -> None:
    found = showing.picture(Picture(content), tmp_path, 3, 1)
    assert found == {"kind": "image", "file": "cell-0003-shown-2.png"}
    assert (tmp_path / "cell-0003-shown-2.png").read_bytes() == PNG
    (tmp_path / "cell-0003.json").write_text('{"outputs": [{"kind": "image", "file": "cell-0003-shown-2.png"}]}')
    kept = Outputs(tmp_path, 1000, []).artifacts()
    assert [(one.name, one.media_type) for one in kept] == [
        ("notebook.json", "application/json"),
        ("picture-1.png", "image/png"),
    ]


@pytest.mark.parametrize("value", [1, "text", None, Picture, Picture(None), Picture("no bytes"), Picture(())])
def test_what_is_no_picture_is_shown_otherwise(tmp_path: Path, value: Any) -> None:
    assert showing.picture(value, tmp_path, 1, 0) is None


def test_a_picture_that_cannot_be_made_or_is_too_large_is_told(tmp_path: Path) -> None:
    failed = showing.picture(Picture(ValueError("no ink")), tmp_path, 1, 0)
    assert failed == {"kind": "text", "text": "<cannot display: no ink>"}
    large = showing.picture(Picture(bytes(showing.FIGURE_BYTES + 1)), tmp_path, 1, 0)
    assert large == {"kind": "text", "text": "<a figure larger than 5 MiB is omitted>"}
    assert list(tmp_path.iterdir()) == []


def test_figures_are_shown_once_whoever_holds_them(tmp_path: Path, pyplot: dict[int, Any]) -> None:
    own, held = figure(), figure()
    pyplot[1] = held
    assert showing.picture(own, tmp_path, 1, 0) == {"kind": "image", "file": "cell-0001-shown-1.png"}
    assert showing.picture(held, tmp_path, 1, 1) is None
    assert showing.figures(tmp_path, 1) == [{"kind": "image", "file": "cell-0001-1.png"}]
    assert (tmp_path / "cell-0001-1.png").read_bytes() == PNG
    assert pyplot == {}
