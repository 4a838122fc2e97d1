"""One file for each version; a file that has been released is never changed."""
