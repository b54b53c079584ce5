"""The command that installs what is missing, as it works here: with this environment's Python, and from where this
package came, which may be a checkout or a wheel and not an index.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

PROJECT = "rlite-pubsub"


def missing(what: str, extra: str) -> str:
    """Return the message for an extra that is not installed."""
    return f"{what} needs the extra `{extra}`, which is not installed here: {how_to_install(extra)}"


def how_to_install(extra: str) -> str:
    """Return a command for a shell."""
    python = shlex.quote(sys.executable or "python3")
    pip = f"{python} -m pip" if importlib.util.find_spec("pip") is not None else f"pip --python {python}"
    return f"{pip} install {_source(extra)}"


def _source(extra: str) -> str:
    place, is_editable = _origin()
    if place is None:
        return shlex.quote(f"{PROJECT}[{extra}]")
    if place.is_dir():
        return ("--editable " if is_editable else "") + shlex.quote(f"{place}[{extra}]")
    return shlex.quote(f"{PROJECT}[{extra}] @ {place.as_uri()}")


def _origin() -> tuple[Path | None, bool]:
    """Return the folder or file that this was installed from, and whether it runs in place; None: an index."""
    checkout = Path(__file__).absolute().parents[1]
    if (checkout / "setup.cfg").exists():
        return checkout, True
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        told = distribution(PROJECT).read_text("direct_url.json")
    except PackageNotFoundError:
        return None, False
    url = urlsplit(json.loads(told)["url"]) if told else urlsplit("")
    place = Path(unquote(url.path))
    return (place, False) if url.scheme == "file" and place.exists() else (None, False)
