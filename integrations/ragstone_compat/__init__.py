"""Scripts for other libraries, on ragstone: only their import lines change."""
