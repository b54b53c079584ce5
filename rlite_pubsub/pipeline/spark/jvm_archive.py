"""Starting the JVM fast: an archive of the classes that Spark loads, and a SPARK_HOME without zipped Python.

    CACHE/rlite-pubsub/spark/<key>/home/{bin,jars}    symbolic links: without python/lib the workers import from
                                                      site-packages, where the .pyc files are
    CACHE/rlite-pubsub/spark/<key>/classes.jsa        AppCDS: about 170 MB, made once (`make`)

The key names this Spark and this Java: another of either has its own. An archive that does not fit is passed over by
the JVM, and one appears under its name only when it is whole.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

TRAINING = "RLITE_SPARK_ARCHIVE"
"""In the environment of the process that makes an archive: where it is to be."""
_QUIET = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=off:stderr")
_DIGEST_BYTES = 8
_FOLDER_MODE = 0o700


def cache() -> Path:
    """The folder of this user's, this Spark's and this Java's."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / APPLICATION_FOLDER / "spark" / _key()


APPLICATION_FOLDER = "rlite-pubsub"


def home() -> Path:
    """Return a SPARK_HOME. It is made if it is not there."""
    folder = cache() / "home"
    spark = _spark()
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    for name in ("bin", "jars"):
        link = folder / name
        if not link.is_symlink():
            new = folder / f".{name}.{secrets.token_hex(4)}"
            new.symlink_to(spark / name)
            new.replace(link)
    return folder


def archive() -> Path:
    """Return where the archive is, or would be."""
    return cache() / "classes.jsa"


def options() -> list[str]:
    """The JVM's."""
    training = os.environ.get(TRAINING)
    if training:
        return ["-Xlog:disable", f"-XX:ArchiveClassesAtExit={training}"]
    return [*_QUIET, f"-XX:SharedArchiveFile={archive()}"] if is_there() else []


def is_there() -> bool:
    return archive().exists()


def make() -> Path:
    """Make the archive, by running a bit of everything in a process of its own. Raises CalledProcessError."""
    target = archive()
    target.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    new = target.parent / f".classes.{secrets.token_hex(4)}.jsa"
    try:
        subprocess.run(
            [sys.executable, "-m", "rlite_pubsub.pipeline.spark.training"],
            env=os.environ | {TRAINING: str(new)},
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
    return target


@lru_cache(maxsize=1)
def _spark() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


@lru_cache(maxsize=1)
def _key() -> str:
    java = Path(os.path.realpath(_java()))
    release = java.parents[1] / "release"
    parts = (_spark(), (_spark() / "version.py").read_bytes(), java, release.read_bytes() if release.exists() else b"")
    return blake2b(repr(parts).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _java() -> str:
    of_home = os.environ.get("JAVA_HOME")
    return f"{of_home}/bin/java" if of_home else shutil.which("java") or "java"
