"""Send made-up visitors to the shop, through OpenFeature's Python SDK: ``python visitors.py --visitors 500``.

They buy some items far more often than others. Needs ``pip install openfeature-sdk openfeature-provider-ofrep``.
"""

from __future__ import annotations

import argparse
import json
import random
from urllib.request import ProxyHandler, Request, build_opener

from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext


def main() -> None:
    """Let visitors look at the offer, and some of them buy it."""
    words = argparse.ArgumentParser(description="Made-up visitors of the shop.")
    words.add_argument("--shop", default="http://127.0.0.1:8080")
    words.add_argument("--visitors", type=int, default=500)
    given = words.parse_args()
    rng = random.Random(1)
    api.set_provider(OFREPProvider(given.shop))
    client = api.get_client()
    opener = build_opener(ProxyHandler({}))
    bought = 0
    for number in range(given.visitors):
        flag = client.get_string_details("main", "none", EvaluationContext(targeting_key=f"made-up-{number}"))
        wanted = 0.4 if flag.value.endswith("7") else 0.05
        reward = int(rng.random() < wanted)
        bought += reward
        path = f"{given.shop}/v1/decisions/{flag.flag_metadata['decision']}/reward"
        opener.open(Request(path, json.dumps({"reward": reward}).encode(), method="PUT"), timeout=30).close()
    print(f"{bought} of {given.visitors} visitors have bought something.")


if __name__ == "__main__":
    main()
