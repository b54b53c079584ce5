"""What is published: an sdist that builds and tests itself, and metadata that an index can show."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sources("about what stands in the tree")
ROOT = Path(__file__).parents[2]
PURE = {"RLITE_PURE": "1"}


def _build(tree: Path, kind: str, out: Path) -> Path:
    words = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(out), str(tree)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **PURE})
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.iterdir()
    return made


_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python 3.11.2, which is Debian 12's, has no filters; from 3.12 on it warns if none is given."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of this tree, unpacked."""
    if importlib.metadata.version("setuptools") < "77" or not (ROOT / ".git").exists():
        pytest.skip("an sdist is made of a checkout, with a new setuptools")
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(_build(ROOT, "sdist", folder / "made")) as archive:
        archive.extractall(folder, **_FILTER)
    (tree,) = (path for path in folder.iterdir() if path.name != "made")
    return tree


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the sdist."""
    return _build(unpacked, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_sdist_has_every_file_of_the_tree(unpacked: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    missing = [name for name in filter(None, listed.split("\0")) if not (unpacked / name).exists()]

    assert not [name for name in missing if (ROOT / name).exists()]
    assert {"docs", "tests", "compat_tests", "CHANGELOG.md", "LICENSE"} <= {path.name for path in unpacked.iterdir()}
    assert not list(unpacked.rglob("node_modules")) and not list(unpacked.rglob("*.pyc"))


def test_wheel_of_the_sdist_has_every_module_and_no_test(unpacked: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    modules = {str(path.relative_to(unpacked)) for path in (unpacked / "rlite_pubsub").rglob("*.py")}

    assert modules <= names
    assert {"rlite_pubsub/gateway/page/index.html", "rlite_pubsub/py.typed", "pyspark_rlite.py"} <= names
    assert {name.partition("/")[0] for name in names} == {"rlite_pubsub", "pyspark_rlite.py"}


def test_sdist_tests_itself(unpacked: Path) -> None:
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/wakeups/test_doorbell.py"]
    seen = f"import rlite_pubsub; assert rlite_pubsub.__file__.startswith('{unpacked}')"
    subprocess.run([sys.executable, "-c", seen], cwd=unpacked, check=True)
    done = subprocess.run([sys.executable, *words], cwd=unpacked, capture_output=True, text=True)

    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr


def test_published_extras_are_for_users_and_all_means_all(metadata: Message) -> None:
    extras = {extra.replace("-", "_") for extra in metadata.get_all("Provides-Extra") or ()}
    everything = next(line for line in metadata.get_all("Requires-Dist") or () if '"all"' in line)
    found = re.search(r"\[(.*?)\]", everything)

    assert "dev" not in extras
    assert found is not None and set(found[1].replace("-", "_").split(",")) == extras - {"all"}


def test_metadata_says_what_it_runs_on_and_where_to_go(metadata: Message) -> None:
    classifiers = metadata.get_all("Classifier") or []
    urls = dict(url.split(", ", 1) for url in metadata.get_all("Project-URL") or ())

    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)} <= set(classifiers)
    assert {"Documentation", "Changelog", "Source", "Issues"} <= urls.keys()
    assert "redis" in metadata["Keywords"].split(",")


def test_links_of_the_long_description_lead_out_of_the_index(metadata: Message) -> None:
    text = str(metadata.get_payload())
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))

    assert len(text) > 1000 and metadata["Description-Content-Type"] == "text/markdown"
    assert [target for target in targets if not re.match(r"https?://|#|mailto:", target)] == []


def test_environment_gets_the_dependency_group_dev(tmp_path: Path) -> None:
    said = subprocess.run(
        ["bash", "-c", '. scripts/environment.sh; development_requirements "$0"', sys.executable],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    group = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]

    assert said.splitlines() == group and any(line.startswith("pytest>") for line in group)


# -- scripts/release


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that can be released as 1.2.3."""
    (tmp_path / "setup.cfg").write_text("[metadata]\nname = some\nversion = 1.2.3\n")
    sections = "## 1.2.3, 2026-01-02\n\n- It works.\n\n## 1.2.2, 2026-01-01\n"
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{sections}")
    _git(tmp_path, "init", "--quiet")
    _commit(tmp_path)
    return tmp_path


def _git(tree: Path, *words: str) -> str:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.invalid", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *author, *words], cwd=tree, capture_output=True, text=True, check=True).stdout


def _commit(tree: Path) -> None:
    _git(tree, "add", "--all")
    _git(tree, "commit", "--quiet", "--message", "all")


def _release(tree: Path, *words: str) -> tuple[int, str]:
    environment = {**os.environ, "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.invalid"}
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "release", "--tree", tree, *words],
        capture_output=True,
        text=True,
        env=environment,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
class TestRelease:
    def test_tree_that_agrees_with_itself_is_tagged_with_its_section(self, tree: Path) -> None:
        assert _release(tree)[0] == 0
        assert _release(tree, "--tag")[0] == 0

        assert "It works." in _git(tree, "tag", "--list", "-n9", "v1.2.3")
        assert "1.2.2" not in _git(tree, "tag", "--list", "-n9", "v1.2.3")
        assert _release(tree, "--tagged", "v1.2.3")[0] == 0

    @pytest.mark.parametrize(
        ("file", "old", "new", "said"),
        [
            ("CHANGELOG.md", "2026-01-02", "unreleased", "no date"),
            ("CHANGELOG.md", "2026-01-02", "2999-01-02", "no date"),
            ("CHANGELOG.md", "## 1.2.3", "## 1.2.4", "begins with 1.2.4"),
            ("CHANGELOG.md", "- It works.\n", "", "says nothing"),
            ("CHANGELOG.md", "## 1.2.3, 2026-01-02", "## Soon", "not headed"),
            ("setup.cfg", "1.2.3", "1.2.dev3", "not a version"),
        ],
    )
    def test_what_does_not_agree_is_named(self, tree: Path, file: str, old: str, new: str, said: str) -> None:
        (tree / file).write_text((tree / file).read_text().replace(old, new))
        _commit(tree)

        code, told = _release(tree, "--tag")

        assert code == 1 and said in told
        assert _git(tree, "tag") == ""

    def test_uncommitted_change_is_not_released(self, tree: Path) -> None:
        (tree / "new").write_text("")

        assert "not committed" in _release(tree)[1]

    def test_tag_of_another_commit_or_of_a_later_version_is_named(self, tree: Path) -> None:
        _git(tree, "tag", "v1.2.3")
        _git(tree, "tag", "v1.10.0")
        (tree / "new").write_text("")
        _commit(tree)

        told = _release(tree)[1]

        assert "v1.2.3 is another commit already" in told and "v1.10.0 is later" in told

    def test_candidate_comes_before_its_release(self, tree: Path) -> None:
        _git(tree, "tag", "v1.2.3rc1")

        assert _release(tree)[0] == 0

    def test_published_tag_must_be_that_of_the_version(self, tree: Path) -> None:
        _git(tree, "tag", "v1.2.2")

        code, told = _release(tree, "--tagged", "v1.2.2")

        assert code == 1 and "the tag is v1.2.2" in told and "there is no tag v1.2.3" in told
