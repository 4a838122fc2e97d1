"""The HTTP interface for an operator's own programs: sessions of a console's users."""
