"""What judges cost."""

from math import isfinite

from ragstone.plain import is_list

Price = tuple[float, float]
"""The price of a million prompt tokens, and of a million reply tokens."""


def check_price(price: object) -> None:
    """Check that a price, where there is one, is one.

    Raises:
        ValueError: It is not two numbers of at least 0.
    """
    numbers = price if is_list(price) else ()
    good = [isinstance(each, (int, float)) and isfinite(each) and each >= 0 for each in numbers]
    if price is not None and good != [True, True]:
        raise ValueError(f"price: {price!r} is none; pass the price of a million prompt and reply tokens: (0.25, 2.0)")


def cost_of(price: Price, input_tokens: float, output_tokens: float) -> float:
    """The cost of so many tokens.

    Example:
        >>> cost_of((0.25, 2.0), 1_000_000, 500_000)
        1.25
    """
    return (price[0] * input_tokens + price[1] * output_tokens) / 1e6
