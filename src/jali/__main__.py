"""`python -m jali` is `jali`."""

from jali.cli.app import main

if __name__ == "__main__":
    main()
