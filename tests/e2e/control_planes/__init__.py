"""What operators and control planes make of the forms that are merged into their Envoys, as far as these need it."""
