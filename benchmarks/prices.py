"""Make the list prices anew: pip download litellm --no-deps && python benchmarks/prices.py litellm-*.whl.

litellm's MIT licence covers all that is outside of its folder enterprise/, as the file is that is read here. Its notice
goes along.
"""

import json
import sys
import zipfile
from datetime import datetime, timezone
from pathlib import Path

from ragstone.limits.budget import HOSTS, PRICES

_FILE = "litellm/model_prices_and_context_window_backup.json"


def prices_of(models: dict[str, dict[str, object]]) -> dict[str, list[float]]:
    """Return the prices of a million tokens in and out by "provider/model", of the providers that judges are of."""
    prices: dict[str, list[float]] = {}
    for name, of in models.items():
        provider = str(of.get("litellm_provider"))
        costs = [of.get(f"{side}_cost_per_token") for side in ("input", "output")]
        if provider in HOSTS.values() and of.get("mode") in ("chat", "responses") and None not in costs and any(costs):
            key = f"{provider}/{name.removeprefix(f'{provider}/')}"
            prices[key] = [round(float(str(cost)) * 1e6, 6) for cost in costs]
    return dict(sorted(prices.items()))


if __name__ == "__main__":
    wheel = Path(sys.argv[1])
    with zipfile.ZipFile(wheel) as archive:
        (notice,) = (name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
        made = {
            "source": " ".join(wheel.name.split("-")[:2]),
            "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
            "notice": archive.read(notice).decode(),
            "prices": prices_of(json.loads(archive.read(_FILE))),
        }
    PRICES.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{PRICES}: {len(made['prices'])} models, {PRICES.stat().st_size / 1e3:.0f} kB")
