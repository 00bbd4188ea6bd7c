"""What was scored, shown: reports of batches and of live traffic, statistics, comparisons, exports."""
