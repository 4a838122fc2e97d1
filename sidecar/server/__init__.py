"""The processes: a supervisor and its workers."""
