"""Shapes of calls that several formats share; a format declares the markers that its models write around them."""
