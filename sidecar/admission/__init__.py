"""Who may have how much, and what it cost: limits, reservations and their settlement."""
