"""`scripts/screenshots [NAME…]`: starts the scene, and puts pictures of the views into docs/pictures/page."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Browser, expect

from page_pictures.browser import Look, browsing, new_context
from page_pictures.cluster import lone_node
from page_pictures.scene import Scene, plant
from page_pictures.sensor_field import sensor_field
from page_pictures.shots import SHOTS, Shot

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "page"
READY = 'body[data-ready="true"]'
WARM_UP = 75.0
"""Seconds of traffic before the first picture, so that charts have a line."""
PATIENCE = 60.0
"""Seconds until a page is ready; twice as many until the scene is."""
LARGEST = 150_000
"""Bytes of a picture, above which a warning is printed."""


async def take(shots: Sequence[Shot], folder: Path, warm_up: float) -> list[str]:
    """Take the pictures, and return what went wrong, with the name of the picture."""
    with tempfile.TemporaryDirectory(prefix="hpwsn-pictures-") as data:
        async with (
            plant(Path(data)) as scene,
            lone_node(Path(data) / "new") as new,
            sensor_field(Path(data) / "field") as field,
            browsing() as browser,
        ):
            expect.set_options(timeout=PATIENCE * 1000)
            bases = {"admin": scene.cluster.admin.base, "new": new.base, "field": field.base}
            bases |= {name: node.base for name, node in scene.cluster.nodes.items()}
            await _warm(scene, warm_up)
            troubles = []
            for shot in shots:
                trouble = await _take_one(browser, bases[shot.where], shot, folder)
                print(f"{shot.name}: {trouble or 'taken'}", file=sys.stderr, flush=True)
                troubles += [f"{shot.name}: {trouble}"] if trouble else []
            return troubles


async def _warm(scene: Scene, seconds: float) -> None:
    print(f"the plant works for {seconds:g} s before the first picture", file=sys.stderr, flush=True)
    await asyncio.sleep(seconds)
    async with asyncio.timeout(2 * PATIENCE):
        while not await scene.is_complete():  # noqa: ASYNC110
            await asyncio.sleep(0.5)


async def _take_one(browser: Browser, base: str, shot: Shot, folder: Path) -> str | None:
    """Take one picture; what kept it from being taken, or None."""
    file = folder / f"{shot.name}.png"
    context = await new_context(browser, Look(shot.size, shot.scheme, reduced_motion=True))
    try:
        context.set_default_timeout(PATIENCE * 1000)
        page = await context.new_page()
        await page.goto(f"{base}/ui/{shot.address}")
        await page.wait_for_selector(READY, state="attached")
        if shot.step is not None:
            await shot.step(page)
        # Charts and live figures have come twice by then.
        await page.wait_for_timeout(2500)
        await page.evaluate("document.fonts.ready")
        file.write_bytes(await _smaller(await page.screenshot(animations="disabled", caret="hide")))
    except Exception as error:  # one picture that fails must not take the others along
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        await context.close()
    size = file.stat().st_size
    return f"{size:,} bytes are more than {LARGEST:,}" if size > LARGEST else None


async def _smaller(picture: bytes) -> bytes:
    """The picture with a palette, a third of its size; unchanged where pngquant is missing."""
    if shutil.which("pngquant") is None:
        return picture
    process = await asyncio.create_subprocess_exec(
        *("pngquant", "--quality", "80-100", "--speed", "1", "--strip", "-"), stdin=PIPE, stdout=PIPE
    )
    found, _ = await process.communicate(picture)
    return found if process.returncode == 0 else picture


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the pictures that are named, or all; 1 where one could not be taken."""
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as topics-dark; none: all")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where they go (default: %(default)s)")
    parser.add_argument(
        "--warm-up",
        type=float,
        default=WARM_UP,
        metavar="SECONDS",
        help="traffic before (default: %(default)g)",
    )
    asked = parser.parse_args(arguments)
    names = [shot.name for shot in SHOTS]
    if asked.list:
        print("\n".join(names))
        return 0
    if unknown := sorted(set(asked.names) - set(names)):
        parser.error(f"no picture {unknown[0]!r}; there are: {', '.join(names)}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    shots = [shot for shot in SHOTS if not asked.names or shot.name in asked.names]
    troubles = asyncio.run(take(shots, asked.folder, asked.warm_up))
    print("\n".join(troubles), end="\n" if troubles else "", file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
