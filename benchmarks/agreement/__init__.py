"""Agreement of scores with people: see README.md. Run as `python benchmarks/agreement FOLDER --judge ... --out DIR`."""
