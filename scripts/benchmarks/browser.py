"""The page in a real browser: bytes at start, 10,000 topics, frames while watching, memory over time.

    scripts/bench browser [--part start|topics|frames|memory …] [--minutes 60] [--quick]

- start: bytes over the wire and requests until the overview shows data, with an empty cache.
- topics: seconds from the navigation until 10,000 topics are open, in one branch, and as a search.
- frames: the times between frames while the tree is scrolled and a topic with 50 events/s is watched.
- memory: the browser's heap after a garbage collection, while 50 events/s are watched.

The machine draws without a graphics card, and node, publisher and browser share its cores.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from page_pictures.browser import Look, browsing, new_context
from playwright.async_api import Browser, CDPSession, Page

from benchmarks.frame import progress
from benchmarks.tools.checkouts import Checkout, running

HERE = Path(__file__).parents[2]
READY = 'body[data-ready="true"]'
TOPICS = 10_000
PUBLISHED, BATCH = 200, 10
"""Events a second, and in a request; the page is sent 50 of them a second."""
WATCHED = "wide:t0000"
ROUNDS = 5
SHAPES = {
    "10,000 in one branch": ("topics?topic=wide", TOPICS),
    "a search for 10,000": ("topics?q=deep", 1000),
}
"""What is opened, and how many rows it has at least; a search lists the first 1,000."""
_COUNTED = """(least) => {
  const tree = document.querySelector('[role="treegrid"]');
  return tree && Number(tree.getAttribute("aria-rowcount")) >= least;
}"""
_FRAMES = """async (seconds) => {
  const list = document.querySelector('[role="treegrid"]').closest(".wrap");
  const times = [];
  let step = 24;
  const end = performance.now() + seconds * 1000;
  await new Promise((resolve) => {
    function frame(now) {
      times.push(now);
      const before = list.scrollTop;
      list.scrollTop += step;
      if (list.scrollTop === before) step = -step;
      if (now < end) requestAnimationFrame(frame);
      else resolve();
    }
    requestAnimationFrame(frame);
  });
  return times.slice(1).map((time, index) => time - times[index]);
}"""

Figures = dict[str, Any]


class Measured:
    """A node with topics and traffic, and a browser."""

    def __init__(self, base: str, browser: Browser, quick: bool, minutes: float) -> None:
        self.base = base
        self._browser = browser
        self.quick = quick
        self.minutes = minutes

    @asynccontextmanager
    async def page(self) -> AsyncIterator[tuple[Page, CDPSession]]:
        """A page of a browser that has nothing in its cache."""
        context = await new_context(self._browser, Look())
        page = await context.new_page()
        try:
            yield page, await context.new_cdp_session(page)
        finally:
            await context.close()

    async def open(self, page: Page, view: str) -> float:
        """Open a view; seconds until it shows data."""
        began = time.perf_counter()
        await page.goto(f"{self.base}/ui/{view}", wait_until="commit")
        await page.wait_for_selector(READY, state="attached", timeout=60_000)
        return time.perf_counter() - began


async def start(measured: Measured) -> Figures:
    """Bytes and requests until the overview shows data."""
    async with measured.page() as (page, session):
        names: dict[str, str] = {}
        sizes: dict[str, int] = {}
        session.on(
            "Network.requestWillBeSent",
            lambda each: names.update({each["requestId"]: each["request"]["url"]}),
        )
        session.on(
            "Network.loadingFinished",
            lambda each: sizes.update({names.get(each["requestId"], ""): int(each["encodedDataLength"])}),
        )
        await session.send("Network.enable")
        seconds = await measured.open(page, "")
        await page.wait_for_load_state("load")
        await page.evaluate("document.fonts.ready")
        own = {url: size for url, size in sizes.items() if "/ui/" in url}
        return {
            "own_kilobytes": round(sum(own.values()) / 1000, 1),
            "own_requests": len([url for url in names.values() if "/ui/" in url]),
            "all_kilobytes": round(sum(sizes.values()) / 1000, 1),
            "all_requests": len(names),
            "seconds": round(seconds, 3),
            "largest": sorted(((size, url.rpartition("/ui/")[2]) for url, size in own.items()), reverse=True)[
                :5
            ],
        }


async def topics(measured: Measured) -> Figures:
    """Seconds until 10,000 topics are open, and found."""
    found: Figures = {}
    for name, (view, least) in SHAPES.items():
        samples = []
        for _ in range(1 if measured.quick else ROUNDS):
            async with measured.page() as (page, _):
                seconds = await measured.open(page, view)
                began = time.perf_counter()
                await page.wait_for_function(_COUNTED, arg=least, timeout=60_000)
                samples.append(seconds + time.perf_counter() - began)
                rows = await page.locator('[role="treegrid"]').get_attribute("aria-rowcount")
                elements = await page.evaluate("document.querySelectorAll('*').length")
        found[name] = {
            "seconds": round(statistics.median(samples), 3),
            "range": [round(min(samples), 3), round(max(samples), 3)],
            "rows": rows,
            "elements": elements,
        }
    return found


async def frames(measured: Measured) -> Figures:
    """Milliseconds between frames while scrolling the tree and watching a topic."""
    seconds = 3 if measured.quick else 30
    async with measured.page() as (page, _), publishing(measured.base):
        await measured.open(page, f"topics?topic={WATCHED}&tab=watch")
        await page.get_by_test_id("watch-event").first.wait_for()
        idle = await page.evaluate(_FRAMES.replace("list.scrollTop += step;", ""), seconds)
        scrolled = await page.evaluate(_FRAMES, seconds)
        return {"watching": spread(idle), "watching and scrolling": spread(scrolled)}


def spread(times: Sequence[float]) -> Figures:
    """How frames were spread, in milliseconds."""
    ordered = sorted(times)
    return {
        "frames": len(ordered),
        "median": round(statistics.median(ordered), 2),
        "p95": round(ordered[int(len(ordered) * 0.95)], 2),
        "p99": round(ordered[int(len(ordered) * 0.99)], 2),
        "longest": round(ordered[-1], 1),
    }


async def memory(measured: Measured) -> Figures:
    """Megabytes of the heap after a garbage collection, once a minute."""
    steps = 2 if measured.quick else max(1, round(measured.minutes))
    pause = 3.0 if measured.quick else 60.0
    found = []
    async with measured.page() as (page, session), publishing(measured.base):
        await session.send("Performance.enable")
        await measured.open(page, f"topics?topic={WATCHED}&tab=watch")
        await page.get_by_test_id("watch-event").first.wait_for()
        for step in range(steps + 1):
            await session.send("HeapProfiler.collectGarbage")
            told = await session.send("Performance.getMetrics")
            metrics = {each["name"]: each["value"] for each in told["metrics"]}
            found.append(
                {"megabytes": round(metrics["JSHeapUsedSize"] / 1e6, 1), "nodes": int(metrics["Nodes"])}
            )
            progress(f"memory after {step * pause / 60:g} min: {found[-1]}")
            if step < steps:
                await asyncio.sleep(pause)
    return {"minutes": steps * pause / 60, "first": found[0], "last": found[-1], "all": found}


PARTS: dict[str, Callable[[Measured], Awaitable[Figures]]] = {
    "start": start,
    "topics": topics,
    "frames": frames,
    "memory": memory,
}


@asynccontextmanager
async def publishing(base: str) -> AsyncIterator[None]:
    """Publish PUBLISHED events a second to the watched topic."""
    task = asyncio.create_task(_publish(base))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _publish(base: str) -> None:
    number = 0
    async with aiohttp.ClientSession() as session:
        while True:
            events = [
                {
                    "place": f"hall {each % 7}",
                    "level": each % 100 / 100,
                    "state": "alarm" if each % 9 else "test",
                }
                for each in range(number, number + BATCH)
            ]
            number += BATCH
            async with session.post(f"{base}/topics/{WATCHED}/events", json=events) as response:
                response.raise_for_status()
            await asyncio.sleep(BATCH / PUBLISHED)


async def _fill(base: str) -> None:
    """Declare the topics: 10,000 below one, and 10,000 below a hundred."""
    wide = "".join(f"[topics.wide.t{number:04}]\n" for number in range(TOPICS))
    deep = "".join(f"[topics.deep{number // 100:02}.deep{number % 100:02}]\n" for number in range(TOPICS))
    async with aiohttp.ClientSession() as session:
        for text in (wide, deep):
            body = {"format": "toml", "text": text}
            async with session.post(f"{base}/topics/import?mode=merge", json=body) as response:
                response.raise_for_status()


async def measure(parts: Sequence[str], quick: bool, minutes: float) -> Figures:
    """The figures of each part."""
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        async with running(Checkout("this", HERE), Path(folder), "serve") as node, browsing() as browser:
            base = f"http://127.0.0.1:{node.port}"
            measured = Measured(base, browser, quick, minutes)
            found: Figures = {}
            filled = False
            # The start comes first: it is that of a node without topics.
            for part in sorted(parts, key=[*PARTS].index):
                if part != "start" and not filled:
                    await _fill(base)
                    filled = True
                progress(part)
                found[part] = await PARTS[part](measured)
            return found


def main(arguments: Sequence[str]) -> int:
    """Measure what was asked, print it, and write it as JSON."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench browser",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--part", action="append", choices=[*PARTS], help="what to measure (default: all)")
    parser.add_argument("--quick", action="store_true", help="short: whether it works, not how fast it is")
    parser.add_argument("--minutes", type=float, default=5, help="length of the part memory (default: 5)")
    parser.add_argument("--output", type=Path, default=Path("build/bench"), help="folder for the JSON file")
    asked = parser.parse_args(arguments)
    found = asyncio.run(measure(asked.part or [*PARTS], asked.quick, asked.minutes))
    text = json.dumps(found, indent=2)
    print(text)
    asked.output.mkdir(parents=True, exist_ok=True)
    (asked.output / "browser.json").write_text(text + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
