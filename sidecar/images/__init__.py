"""Images as clients send them and as model runtimes take them, without I/O."""
