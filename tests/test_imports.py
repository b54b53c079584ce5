"""Every module of the package can be imported, as it is installed here; an extra that is not installed is named."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

EXTRAS = {
    "argparse_manpage", "boto3", "celery", "channels", "deltalake", "django", "django_redis", "dramatiq", "fsspec",
    "kombu", "msgpack", "prometheus_client", "prompt_toolkit", "pyarrow", "pyspark", "pytest", "re2", "rich", "s3fs",
    "shtab", "uvicorn", "uvloop",
}  # fmt: skip
"""What an environment may do without: what the extras of setup.cfg bring, and pytest."""

PROGRAM = """
import importlib, json, pkgutil, sys, traceback
import rlite_pubsub

failed = {}
def import_(name):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:
        failed[name] = [missing.name.partition(".")[0], traceback.format_exc()]
    except BaseException:
        failed[name] = [None, traceback.format_exc()]

import_("pyspark_rlite")
for module in pkgutil.walk_packages(rlite_pubsub.__path__, "rlite_pubsub.", onerror=import_):
    if not module.name.endswith(".__main__"):
        import_(module.name)
print(json.dumps(failed))
"""


def test_every_module_can_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout.splitlines()[-1])

    assert {name: said for name, (missing, said) in failed.items() if missing not in EXTRAS} == {}
    if failed:
        pytest.skip(f"not installed here, and nothing more is missing: {sorted({one for one, _ in failed.values()})}")
