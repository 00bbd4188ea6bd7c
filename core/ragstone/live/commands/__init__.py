"""The commands of live traffic: worker, alarms, feedback, forget."""
