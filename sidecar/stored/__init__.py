"""What clients have stored: responses with their items, sealed for the team that made them."""
