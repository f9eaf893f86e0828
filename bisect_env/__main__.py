"""``python -m bisect_env``, and what the installed ``bisect-env`` runs."""

import os

try:
    from bisect_env.cli.interrupts import leaving
except KeyboardInterrupt:
    os._exit(130)  # Before it could be said what Ctrl-C does.


def main() -> None:
    """Run the command line and exit with its code; Ctrl-C ends it cleanly from the first import to the last line."""
    leaving()
    from bisect_env.cli.main import main as run  # Only now: this takes most of the time before a command begins.

    try:
        run()
    finally:
        leaving()


if __name__ == "__main__":
    main()
