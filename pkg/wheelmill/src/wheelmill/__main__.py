"""The command line's entry point: the only place that catches, prints and exits."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from wheelmill import __version__
from wheelmill.errors import WheelmillError
from wheelmill.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE, INTERRUPTED = 2, 130
# Each verb is imported when it is asked for, so that `plan` does not wait for what `build` needs.
VERBS = {
    "plan": "cli_plan",
    "build": "cli_build",
    "audit": "cli_audit",
    "cover": "cli_cover",
    "repro": "cli_repro",
    "test": "cli_test",
    "index": "cli_index",
    "which": "cli_which",
    "explain": "cli_explain",
    "doctor": "cli_doctor",
    "publish": "cli_publish",
    "key": "cli_key",
    "ci": "cli_ci",
    "images": "cli_images",
    "refresh": "cli_refresh",
}
# A command whose name would hide a module has a line below it.
NAMES = {"which": "which_"}


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in VERBS:
            raise click.UsageError(f"there is no verb {name!r}; {did_you_mean(name, list(VERBS))}")
        command = getattr(import_module(f"wheelmill.{VERBS[name]}"), NAMES.get(name, name))
        return command if isinstance(command, click.Command) else None


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Builds, proves and publishes PyTorch C++/CUDA extension wheels for a matrix of torch, CUDA and Python."""


def _say(message: str, remedy: str = "") -> None:
    red, plain = ("\033[31m", "\033[0m") if sys.stderr.isatty() and "NO_COLOR" not in os.environ else ("", "")
    print(f"{red}error:{plain} {message}", file=sys.stderr)
    if remedy:
        print(f"  what to do: {remedy}", file=sys.stderr)


def _write_all(*streams: object) -> None:
    """Have a letter that a stream's encoding lacks written as an escape: it ends no report."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb and return its exit code: 0, or 1 to 4 and 130 as `wheelmill.errors` and the design name them."""
    # A CI system's cancel and a closed terminal stop a run as Ctrl-C does: nothing is left running.
    for signum in (signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signum, signal.default_int_handler)
    _write_all(sys.stdout, sys.stderr)
    try:
        cli.main(args=argv, prog_name="wheelmill", standalone_mode=False)
    except WheelmillError as error:
        _say(str(error), error.remedy)
        return error.exit_code
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        _say(error.format_message(), "see `wheelmill --help`")
        return USAGE
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted", "run the same command again: finished wheels and downloads are kept")
        return INTERRUPTED
    except OSError as error:
        from wheelmill.build import explained

        known = explained(error)
        if known is None:
            raise
        _say(str(known), known.remedy)
        return known.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
