"""Reports as pages: one file each that loads nothing, runs nothing and escapes all that comes from outside."""
