"""A configuration proposed for a Triton that is there, for ``responses-sidecar init``."""
