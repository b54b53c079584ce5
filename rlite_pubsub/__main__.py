"""`python -m rlite_pubsub` is `rlite-pubsub`."""

from rlite_pubsub.cli.command_line import main

if __name__ == "__main__":
    raise SystemExit(main())
