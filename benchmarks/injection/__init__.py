"""What attacks inside the data do to scores. Run as `python benchmarks/injection --judge ... --out DIR`."""
