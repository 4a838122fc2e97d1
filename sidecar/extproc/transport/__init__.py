"""What carries ext_proc streams between Envoy and the sessions, one file each."""
