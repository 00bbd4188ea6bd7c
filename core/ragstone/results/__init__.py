"""Whatever outlives a call: records in files, journals, queues and databases. Sinks are in `ragstone.live`."""
