"""One file per surface: what it accepts, its defaults and the shapes of its answers and errors."""
