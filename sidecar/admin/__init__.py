"""The HTTP interface for an operator: sessions of a console's users, metrics, the status page."""
