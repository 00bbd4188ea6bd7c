"""`RunConfig`, where ragas has it."""

from ragstone_compat.shared import check_names


class RunConfig:
    """How `evaluate` runs.

    Args:
        timeout: Seconds for one sample by one metric, in which its calls are in flight.
        max_retries: Without effect, as are those that are not named: a call that fails is tried again up to five times.
        max_wait: Without effect.
        max_workers: Calls to judges in flight at most.
        **others: `exception_types`, `log_tenacity`, `seed`, `thread_timeout`: without effect.

    Raises:
        TypeError: ragas' class has no such option.
    """

    def __init__(
        self,
        timeout: float = 180,
        max_retries: int = 10,
        max_wait: float = 60,
        max_workers: int = 16,
        **others: object,
    ) -> None:
        check_names("RunConfig", others, ("exception_types", "log_tenacity", "seed", "thread_timeout"))
        self.timeout, self.max_retries, self.max_wait, self.max_workers = timeout, max_retries, max_wait, max_workers
