"""``python -m stack``, which ``./dev`` calls."""

from stack.cli import main

main()
