"""Whether what was given as a monitor is one."""

_METHODS = ("submit", "skip", "failed")


def check_monitor(monitor: object) -> None:
    """Refuse what is no monitor. Anything that has a monitor's methods for handlers will do.

    Raises:
        TypeError: It lacks one of the methods, or is a class.

    Example:
        >>> check_monitor([])
        Traceback (most recent call last):
        TypeError: monitor: is list; pass a monitor, such as ragstone.monitor.Monitor([...])
    """
    if isinstance(monitor, type) or not all(callable(getattr(monitor, name, None)) for name in _METHODS):
        what = f"the class {monitor.__name__}" if isinstance(monitor, type) else type(monitor).__name__
        raise TypeError(f"monitor: is {what}; pass a monitor, such as ragstone.monitor.Monitor([...])")
