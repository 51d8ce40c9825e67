"""The repository itself: pages that are fresh and say what is so, locks without hosts, lints that bite."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import reference  # noqa: E402


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("name", reference.PAGES)
def test_generated_pages_are_fresh(name: str) -> None:
    assert (ROOT / name).read_text() == reference.PAGES[name](), "run `make docs`"


def test_the_sql_page_names_what_the_guard_allows_and_nothing_that_it_refuses() -> None:
    words = set(re.findall(r"`([^`]+)`", (ROOT / "docs/reference/sql.md").read_text()))
    lists = ROOT / "spark-guard/src/main/resources/headgate/guard"

    def names(file: str) -> set[str]:
        lines = (lists / f"{file}.txt").read_text().splitlines()
        return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}

    for file in ("functions", "properties", "metadata-tables"):
        assert names(file) <= words, file
    called = {word.removeprefix("CALL lake.system.").split("(")[0] for word in words if word.startswith("CALL ")}
    assert called == names("procedures")
    for file in ("refused-functions", "refused-metadata-tables"):
        assert names(file), file
        assert names(file) & words == set(), file


def docstrings(file: Path) -> str:
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    described = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, nodes))
    return "\n".join(ast.get_docstring(node) or "" for node in described)


@pytest.mark.processes
def test_docs_and_docstrings_name_modules_that_exist() -> None:
    modules = {path.name for path in tracked() if path.suffix == ".py"}
    texts = {path: docstrings(path) for path in tracked() if path.is_relative_to(ROOT / "src") and path.suffix == ".py"}
    texts |= {path: path.read_text() for path in tracked() if path.suffix == ".md"}
    for path, text in texts.items():
        named = set(re.findall(r"(?<![\w*])([a-z_]\w*\.py)\b", text))
        missing = named - modules - {"order_sizes.py"}  # written by `headgate demo`
        assert missing == set(), f"{path.relative_to(ROOT)} names {sorted(missing)}, which no module is called"


def test_every_setting_is_described() -> None:
    for name, field, _ in reference.described(reference.Settings):
        assert field.description, name


def test_every_dependency_has_its_reason() -> None:
    page = (ROOT / "docs/decisions/0002-dependencies.md").read_text()
    for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]:
        name = re.split(r"[\[<>=]", one)[0]
        assert name in page, name


def test_locks_carry_hashes_and_name_no_host() -> None:
    for lock in ("requirements.lock", "benchmarks/requirements.lock"):
        text = (ROOT / lock).read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
        assert "--index-url" not in text


def test_decisions_are_short_and_name_what_keeps_them() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert len(pages) >= 7
    for number, page in enumerate(pages, 1):
        text = page.read_text()
        assert page.name.startswith(f"{number:04d}-")
        assert len(text.splitlines()) <= 45, page.name
        assert "**Kept by**" in text, page.name
        for named in re.findall(r"`((?:tests|tools|benchmarks)/[\w/.]+)`", text):
            assert (ROOT / named).exists(), (page.name, named)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)


def test_the_make_targets_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"`make ([a-z-]+)", page.read_text()):
            assert target in targets, (page.name, target)


def test_the_commands_that_pages_name_exist() -> None:
    known = {" ".join(words[1:]) for words, _ in reference.commands()}
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        if page.name == "commands.md":
            continue
        for line in re.findall(r"^headgate ([a-z][a-z -]*)", page.read_text(), re.MULTILINE):
            words = line.split()
            assert any(" ".join(words[:size]) in known for size in (1, 2)), (page.name, line)


def test_the_map_names_every_package_and_no_other() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(
        re.findall(r"^\| `([a-z_/]+)` \|", text.split("## Map of the code")[1].split("## Glossary")[0], re.MULTILINE)
    )
    source = ROOT / "src/headgate"
    packages = {str(file.parent.relative_to(source)) for file in source.rglob("*.py")} - {"."}
    assert packages - named == set(), "add them to the map in CONTRIBUTING.md"
    assert named - packages == set(), "remove them from the map in CONTRIBUTING.md"


def test_access_is_pure() -> None:
    """No I/O, no framework: the standard library, YAML, and what knows no slice."""
    allowed = {"headgate.access", "headgate.kit.ids", "headgate.kit.names", "yaml"}
    for file in (ROOT / "src/headgate/access").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                name = node.module
            elif isinstance(node, ast.Import):
                name = node.names[0].name
            else:
                continue
            standard = name.split(".")[0] in sys.stdlib_module_names
            assert standard or any(name.startswith(one) for one in allowed), (file.name, name)
            assert name.split(".")[0] not in {"socket", "sqlite3", "subprocess", "urllib", "http"}, (file.name, name)


@pytest.mark.processes
def test_no_file_grows_without_end() -> None:
    for file in tracked():
        if file.suffix == ".py" and "migrations" not in file.parts:
            most = 600 if "tests" in file.parts else 420
            assert len(file.read_text().splitlines()) <= most, file


@pytest.mark.processes
def test_nothing_unfinished_is_left() -> None:
    words = re.compile(r"\b(TODO|FIXME|XXX)\b|raise NotImplementedError|mark\.(skip|xfail)")
    # Tests of what only root can do name that mark, and nothing else is skipped.
    named = {Path(__file__).name, "root.py"}
    for file in tracked():
        if file.suffix == ".py" and file.name not in named:
            assert not words.search(file.read_text()), file


def test_no_file_of_endpoints_holds_sql() -> None:
    """Repositories hold SQL. A connection may pass through."""
    files = [*ROOT.glob("src/headgate/**/*endpoints.py")]
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sqlalchemy":
                assert {alias.name for alias in node.names} <= {"Connection"}, file
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("sqlalchemy") for alias in node.names), file
