"""The libraries that a store has: changed by several processes, each of which has a list of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rlite_pubsub.engine.functions.libraries import Libraries
from rlite_pubsub.engine.functions.library import Function, FunctionError, read_metadata
from rlite_pubsub.storage.commons import function_libraries, shared_settings
from rlite_pubsub.storage.store import Store


def register(body: bytes) -> Mapping[bytes, Function]:
    """Functions whose names the code has, instead of Lua."""
    return {name: Function(name, None, frozenset(), None) for name in body.split()}


def code(name: str, *functions: str) -> bytes:
    return f"#!lua name={name}\n{' '.join(functions)}".encode()


def opened(store: Store) -> Libraries:
    """As one more process has them."""
    libraries = Libraries(store.data, lambda txn, requests: None)
    libraries.register_by(register, register)
    return libraries


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def libraries(store: Store) -> Libraries:
    return opened(store)


def names(libraries: Libraries) -> dict[bytes, list[bytes]]:
    return {name: list(one.functions) for name, one in libraries.catalogue().libraries.items()}


def test_what_one_has_loaded_another_finds(store: Store, libraries: Libraries) -> None:
    assert libraries.load(code("a", "f", "g"), replace=False) == b"a"
    other = opened(store)
    assert names(other) == {b"a": [b"f", b"g"]}
    assert other.function(b"F") is not None and other.function(b"h") is None


def test_a_version_tells_that_there_is_something_new(store: Store, libraries: Libraries) -> None:
    told: list[int] = []
    other = opened(store)
    other.tell_by(told.append)
    assert names(libraries) == {}
    other.load(code("a", "f"), replace=False)
    assert told == [store.data.read(shared_settings.version)]
    assert names(libraries) == {}, "nobody has told it"
    libraries.follow(store.data.read(function_libraries.version))
    assert names(libraries) == {b"a": [b"f"]}


def test_a_change_is_made_upon_what_there_is_and_not_upon_what_was(store: Store, libraries: Libraries) -> None:
    other = opened(store)
    assert names(other) == {}
    libraries.load(code("a", "f"), replace=False)
    with pytest.raises(FunctionError, match="Function f already exists"):
        other.load(code("b", "f"), replace=False)
    other.load(code("b", "g"), replace=False)
    assert libraries.delete(b"b")
    assert not other.delete(b"b")
    assert names(other) == {b"a": [b"f"]}


def test_what_is_refused_leaves_what_there_was(store: Store, libraries: Libraries) -> None:
    libraries.load(code("a", "f"), replace=False)
    for refused, text in (
        (code("a", "g"), "Library 'a' already exists"),
        (code("b", "F"), "Function F already exists"),
        (code("b"), "No functions registered"),
        (b"#!js name=b\nf", "Engine 'js' not found"),
    ):
        with pytest.raises(FunctionError, match=text):
            libraries.load(refused, replace=False)
    with pytest.raises(FunctionError, match="No functions"):
        libraries.load(code("a"), replace=True)
    with pytest.raises(FunctionError, match="Library a already exists"):
        libraries.restore([code("c", "x"), code("a", "y")])
    assert names(libraries) == names(opened(store)) == {b"a": [b"f"]}


def test_restoring_appends_replaces_or_is_all_that_is_left(store: Store, libraries: Libraries) -> None:
    libraries.load(code("a", "f"), replace=False)
    libraries.load(code("b", "g"), replace=False)
    libraries.restore([code("a", "h")], replace=True)
    assert names(opened(store)) == {b"a": [b"h"], b"b": [b"g"]}
    libraries.restore([code("c", "f")], only=True)
    assert names(libraries) == names(opened(store)) == {b"c": [b"f"]}
    libraries.flush()
    assert names(libraries) == names(opened(store)) == {}


def test_one_that_can_not_be_loaded_any_more_does_not_take_the_others_with_it(
    store: Store, libraries: Libraries, caplog: pytest.LogCaptureFixture
) -> None:
    libraries.load(code("a", "f"), replace=False)
    libraries.load(code("b", "g"), replace=False)

    def register_again(body: bytes) -> Mapping[bytes, Function]:
        if b"g" in body:
            raise FunctionError(b"too slow")
        return register(body)

    other = Libraries(store.data, lambda txn, requests: None)
    other.register_by(register, register_again)
    assert names(other) == {b"a": [b"f"]}
    assert "too slow" in caplog.text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"lua name=x\n", "Missing library metadata"),
        (b"#!lua name=x", "Invalid library metadata"),
        (b'#!lua "name=x\n', "Invalid library metadata"),
        (b"#!lua name=x\0\n", "Invalid library metadata"),
        (b"#!lua\n", "Library name was not given"),
        (b"#!lua name=x name=y\n", "Invalid metadata value, name argument was given multiple times"),
        (b"#!lua name=x foo=bar\n", "Invalid metadata value given: foo=bar"),
    ],
)
def test_a_first_line_that_says_too_little_or_too_much_is_refused(line: bytes, text: str) -> None:
    with pytest.raises(FunctionError) as refused:
        read_metadata(line)
    assert str(refused.value) == text
