"""The makers of the data need packages of their own, which data/versions.json names."""

collect_ignore = ["make"]
