"""Users of an embedded store: who can open it may do everything, until a rule says otherwise; no way is too short."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis.exceptions import NoPermissionError

import rlite_pubsub


def test_rules_of_the_default_user_hold_for_publishers_that_have_published_before(tmp_path: Path) -> None:
    with rlite_pubsub.Redis(str(tmp_path / "store")) as client:
        assert client.publish("secret", "x") == 0
        assert client.execute_command("ACL", "SETUSER", "default", "resetchannels", "&open") == b"OK"
        with pytest.raises(NoPermissionError):
            client.publish("secret", "x")
        pipeline = client.pipeline(transaction=False).publish("secret", "1").publish("open", "1")
        refused, taken = pipeline.execute(raise_on_error=False)
        assert isinstance(refused, NoPermissionError) and taken == 0
        client.execute_command("ACL", "SETUSER", "default", "&*")
        assert client.publish("secret", "x") == 0
