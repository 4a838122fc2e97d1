"""What is told about exchanges while they run and when they are over: the observers."""
