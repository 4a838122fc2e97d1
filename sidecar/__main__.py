"""``python -m sidecar`` is ``responses-sidecar``."""

from sidecar.cli import main

if __name__ == "__main__":
    main()
