"""A frame of a replay as an SVG picture.

Sensors are discs that grow with their queues, in the colour of their community; loners are grey, heads have a
ring. Subscribers are squares. Lines show transmissions since the last frame: blue among sensors, green to
subscribers, orange given back.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpwsn.dtn.drawing.replay_frames import Frame, Replay

SIDE, MARGIN, CAPTION = 600, 12, 28
COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#994455", "#997700")
LONER = "#999999"
LINES = {"up": "#1f5fd0", "taken": "#118833", "given": "#e07000"}
SMALLEST, LARGEST = 2.5, 9.0
"""Radius of a sensor with an empty queue and with a full one, in pixels."""


def picture(replay: Replay, frame: Frame) -> str:
    """The picture of a frame."""
    width, height = SIDE + 2 * MARGIN, SIDE + 2 * MARGIN + CAPTION
    body = "\n".join(
        [*_grid(replay), *_lines(replay, frame), *_sensors(replay, frame), *_mobiles(replay, frame)]
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="{-MARGIN} {-MARGIN} {width} {height}" font-family="sans-serif" font-size="14">\n'
        f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{width}" height="{height}" fill="white"/>\n'
        f'{body}\n<text x="0" y="{SIDE + CAPTION}">{caption(replay, frame)}</text>\n</svg>\n'
    )


def caption(replay: Replay, frame: Frame) -> str:
    """What a frame has measured so far."""
    share = f"{100 * frame.received / frame.wanted:.1f} %" if frame.wanted else "nothing"
    return (
        f"{replay.protocol}, second {frame.time}: {frame.created} events,"
        f" {share} of what subscribers want delivered"
    )


def colour(group: int) -> str:
    """The colour of a community; -1 is a loner."""
    return LONER if group < 0 else COLOURS[group % len(COLOURS)]


def _at(replay: Replay, place: tuple[float, float]) -> tuple[str, str]:
    scale = SIDE / replay.parameters.area
    return f"{place[0] * scale:.1f}", f"{SIDE - place[1] * scale:.1f}"


def _grid(replay: Replay) -> Iterator[str]:
    step = SIDE / replay.parameters.grid
    for i in range(replay.parameters.grid + 1):
        yield f'<path d="M{i * step:.1f} 0V{SIDE}M0 {i * step:.1f}H{SIDE}" stroke="#eeeeee"/>'


def _lines(replay: Replay, frame: Frame) -> Iterator[str]:
    nodes = [*replay.sensors, *frame.mobiles]
    for kind, giver, taker, count in frame.lines:
        (x1, y1), (x2, y2) = _at(replay, nodes[giver]), _at(replay, nodes[taker])
        yield (
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{LINES[kind]}"'
            f' stroke-width="{min(4.0, 1 + count / 10):.1f}" opacity="0.6"/>'
        )


def _sensors(replay: Replay, frame: Frame) -> Iterator[str]:
    heads = set(frame.heads)
    for sensor, place in enumerate(replay.sensors):
        x, y = _at(replay, place)
        radius = SMALLEST + (LARGEST - SMALLEST) * frame.queued[sensor] / replay.parameters.queue
        ring = ' stroke="black" stroke-width="1.5"' if sensor in heads else ""
        yield f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="{colour(replay.groups[sensor])}"{ring}/>'


def _mobiles(replay: Replay, frame: Frame) -> Iterator[str]:
    for place in frame.mobiles:
        x, y = _at(replay, place)
        yield f'<path d="M{x} {y}m-5 -5h10v10h-10z" fill="black"/>'
