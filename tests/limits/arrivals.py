"""One process that sends random requests to the window and prints every reply as a JSON line.

Run as a script: arrivals.py URL SEED COUNT WINDOW_S
"""

import asyncio
import json
import random
import sys

from rota.limits.result import Ceilings
from rota.limits.window import Window, connect

# The last key changes its tier with every request.
TIERS = {
    "tight": [Ceilings(10, 3)],
    "equal": [Ceilings(150, 150)],
    "small": [Ceilings(300, 60)],
    "large": [Ceilings(1500, 900)],
    "moving": [Ceilings(40, 30), Ceilings(400, 100), Ceilings(900, 20)],
}


async def main(url: str, seed: int, count: int, window_s: float) -> None:
    dice = random.Random(seed)
    redis = connect(url)
    window = Window(redis, processes=1, window_s=window_s)

    async def arrive() -> None:
        key = dice.choice(list(TIERS))
        ceilings = dice.choice(TIERS[key])
        ai = dice.random() < 0.4
        reply = await window.run_script(key, ceilings, ai=ai)
        print(json.dumps([key, ceilings.all, ceilings.ai, ai, *reply]))

    left = count
    while left:
        batch = min(left, dice.randint(1, 60))
        await asyncio.gather(*[arrive() for _ in range(batch)])
        left -= batch
        if dice.random() < 0.02:
            await asyncio.sleep(dice.random() * window_s * 0.4)
    await redis.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
