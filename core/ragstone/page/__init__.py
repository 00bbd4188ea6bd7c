"""Reports as pages: one file each that loads nothing, runs no script but ours, and escapes all text from outside."""
