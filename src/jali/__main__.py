"""`python -m jali` is `jali`, and this is where both begin: Ctrl-C ends them quietly before anything is loaded."""

import signal


def main() -> None:
    """What the installed command `jali` runs."""
    # Nothing is under way while modules are loaded or the process ends, so that Ctrl-C may end it without a word.
    quiet = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if quiet:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from jali.cli.app import main as run

    if quiet:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    finally:
        if quiet:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
