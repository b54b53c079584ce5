"""setup.py: what is compiled, and that nobody is kept from installing."""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from class_tree import Class, ClassTree, modules_below

pytestmark = pytest.mark.sources("about what stands in the tree")
ROOT = Path(__file__).parents[2]
SETUP = ROOT / "setup.py"

SETUPTOOLS = """
class Extension:
    def __init__(self, name, sources):
        self.named = name, sources
    def __repr__(self):
        return "{} of {}".format(*self.named)
def setup(**given):
    print('extensions:', given.get('ext_modules'))
"""
COMPILING = """
from pathlib import Path
class Extension(list):
    extra_compile_args = []
def mypycify(*_, target_dir, **__):
    extension = Extension()
    extension.sources = [f"{target_dir}/{number}.c" for number in range(500)]
    Path(target_dir).mkdir()
    for source in extension.sources:
        Path(source).write_text(f"int f{source[-5:-2].strip('/')};")
    return [extension]
"""
CCOMPILER = "class CCompiler:\n    def compile(self, sources):\n        return sources\n"
FAILING = "def mypycify(*_, **__):\n    raise SystemExit('no such type')\n"


def table() -> list[str]:
    found = runpy.run_path(str(SETUP))["COMPILED"]
    assert isinstance(found, list)
    return found


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in ("CC", "RLITE_PURE")}
    return subprocess.run(
        [sys.executable, SETUP, *words], cwd=ROOT, env=clean | environment, capture_output=True, text=True, check=True
    )


COMPILER = pytest.mark.skipif(run("obstacle").stdout != "\n", reason="nothing can be compiled here")


def build(folder: Path, mypyc: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A wheel, with a setuptools and a mypyc that only say what they were given."""
    (folder / "setuptools.py").write_text(SETUPTOOLS)
    (folder / "distutils").mkdir()
    (folder / "distutils" / "__init__.py").touch()
    (folder / "distutils" / "ccompiler.py").write_text(CCOMPILER)
    (folder / "mypyc").mkdir()
    (folder / "mypyc" / "__init__.py").touch()
    (folder / "mypyc" / "build.py").write_text(mypyc)
    return run("bdist_wheel", PYTHONPATH=str(folder), **environment)


def test_sources_joined_for_the_compilers_are_all_there_once_and_in_order(tmp_path: Path) -> None:
    names = runpy.run_path(str(SETUP))
    sources = [tmp_path / f"{number}.c" for number in range(97)]
    for number, source in enumerate(sources):
        source.write_text("x" * (number * number % 89))
    joined = names["_joined"](sources)
    assert len(joined) == min(names["_JOBS"], len(sources))
    assert "".join(Path(file).read_text() for file in joined) == "".join(f'#include "{source}"\n' for source in sources)


def test_what_is_compiled_is_there() -> None:
    assert table() == sorted(set(table()))
    for name in table():
        assert (ROOT / name.replace(".", "/")).with_suffix(".py").is_file(), name


def test_constants_of_what_is_compiled_are_final() -> None:
    """Compiled code looks any other name of a module up in a dictionary, each time."""
    of_a_test = {"rlite_pubsub.keyspace.keyspace.MAX_CACHED_BYTES"}
    for name in table():
        source = (ROOT / name.replace(".", "/")).with_suffix(".py").read_text()
        plain = [
            f"{name}.{target.id}"
            for statement in ast.parse(source).body
            if isinstance(statement, ast.Assign) and not ast.unparse(statement.value).startswith("TypeVar(")
            for target in statement.targets
            if isinstance(target, ast.Name) and (target.id.isupper() or target.id == "log")
        ]
        assert set(plain) <= of_a_test, plain


def test_what_is_compiled_can_be_typed_without_any_other_package() -> None:
    """As mypyc does it. Where it complains, whoever installs gets pure Python, and one line that says so."""
    files = [f"{name.replace('.', '/')}.py" for name in table()]
    words = [sys.executable, "-m", "mypy", f"--cache-dir={os.devnull}", *runpy.run_path(str(SETUP))["_MYPY"], *files]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


MARK = "mypyc_attr(allow_interpreted_subclasses=True)"


def unmarked(compiled: set[str], modules: dict[str, Path]) -> list[str]:
    """Each class of these compiled modules that has a subclass in another one, and no mark that allows it: an instance
    of the subclass can't be made. Classes that mypyc leaves as they are (it says which) need none."""
    tree = ClassTree(modules)
    native = {one.full_name: one for one in tree.classes if one.module in compiled and _is_native(one)}
    return [
        f"{one.full_name} (line {one.line}) inherits from {base}, which has no @{MARK}"
        for one in tree.classes
        if one.module not in compiled
        for base in one.bases
        if base in native and MARK not in native[base].decorators
    ]


def _is_native(one: Class) -> bool:
    supported = ("trait", "dataclass", "final", "mypyc_attr")
    is_decorated = any(name.partition("(")[0].rpartition(".")[2] not in supported for name in one.decorators)
    others = ("Protocol", "NamedTuple", "TypedDict", "Enum", "IntEnum", "Flag", "IntFlag", "StrEnum")
    return not is_decorated and not any(base.rpartition(".")[2] in others for base in one.bases)


def test_compiled_class_with_a_subclass_outside_is_marked() -> None:
    modules = modules_below(ROOT, "rlite_pubsub", "pyspark_rlite.py", "contrib", "tests", "compat_tests")
    assert unmarked(set(table()), modules) == []


def test_compiled_class_without_its_mark_is_found_through_whatever_hands_it_on(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/__init__.py").write_text("from a.hot import Hot as Warm, Marked, Told\n")
    marked = f"from mypy_extensions import mypyc_attr\n@{MARK}\nclass Marked: pass\n"
    (tmp_path / "a/hot.py").write_text(marked + "class Hot: pass\nclass Told(Protocol): pass\nclass Own(Hot): pass\n")
    (tmp_path / "a/cold.py").write_text(
        "import a\nfrom . import Warm\nfrom .hot import Hot\n"
        "class One(a.Warm): pass\nclass Two(Warm[int]): pass\nclass Three(Two, Hot): pass\n"
        "class Four(a.Marked): pass\nclass Five(a.Told): pass\n"
        "def inside():\n    class Six(Hot): pass\n"
    )

    found = unmarked({"a.hot"}, modules_below(tmp_path, "a"))

    assert [line.partition(" ")[0] for line in found] == ["a.cold.One", "a.cold.Two", "a.cold.Three", "a.cold.Six"]


def test_nothing_compiled_stands_in_the_tree_and_hides_its_source() -> None:
    binaries = [path for top in ("rlite_pubsub", "protocol") for path in (ROOT / top).rglob("*.so")]
    assert not binaries


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"RLITE_PURE": "1"}, "RLITE_PURE is set"),
        ({"CC": "/nonexistent/cc"}, "there is no C compiler (/nonexistent/cc)"),
    ],
)
def test_what_keeps_from_compiling_is_said(environment: dict[str, str], why: str, tmp_path: Path) -> None:
    assert run("obstacle", **environment).stdout == f"{why}\n"
    built = build(tmp_path, COMPILING, **environment)
    assert built.stdout == "extensions: []\n"
    assert built.stderr == f"rlite-pubsub: pure Python, because {why}\n"


@COMPILER
def test_a_wheel_is_compiled(tmp_path: Path) -> None:
    built = build(tmp_path, COMPILING)
    written = runpy.run_path(str(SETUP))["WRITTEN_IN_C"]
    assert all((ROOT / source).is_file() for source in written.values())
    extensions = ", ".join(["[]", *(f"{name} of {[source]}" for name, source in written.items())])
    assert (built.stdout, built.stderr) == (f"extensions: [{extensions}]\n", "")


@COMPILER
def test_what_fails_to_compile_is_installed_as_pure_python(tmp_path: Path) -> None:
    built = build(tmp_path, FAILING)
    assert built.stdout == "extensions: []\n"
    assert built.stderr == "rlite-pubsub: pure Python, because compiling failed: SystemExit('no such type')\n"


def test_what_is_not_a_wheel_is_not_compiled(tmp_path: Path) -> None:
    (tmp_path / "setuptools.py").write_text(SETUPTOOLS)
    for word in ("editable_wheel", "sdist", "egg_info"):
        assert run(word, PYTHONPATH=str(tmp_path)).stdout == "extensions: None\n"
