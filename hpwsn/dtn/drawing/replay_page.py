"""A replay as one HTML file that plays it: no server, no other file, no network."""

from __future__ import annotations

import json
from dataclasses import asdict

from hpwsn.dtn.drawing.replay_frames import Replay
from hpwsn.dtn.drawing.replay_pictures import LINES, caption, colour

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>TITLE</title>
<style>
body { font: 15px sans-serif; margin: 1em auto; width: 640px; color: #222; background: #fff }
canvas { border: 1px solid #ccc } input { width: 100% } p { margin: .4em 0 }
.up { color: UP } .taken { color: TAKEN } .given { color: GIVEN }
</style>
<h1>TITLE</h1>
<canvas id="field" width="640" height="640" role="img" aria-label="the sensor field"></canvas>
<input id="time" type="range" min="0" value="0" aria-label="time">
<p><button id="play">Pause</button> <span id="caption"></span></p>
<p>Discs: sensors, larger with longer queues, coloured by community; grey: loners; ring: heads. Squares:
subscribers. Lines: <span class="up">between sensors</span>, <span class="taken">to subscribers</span>, <span
class="given">given back</span>.</p>
<script>
const replay = DATA;
const side = 640, scale = side / replay.area, context = document.getElementById("field").getContext("2d");
const slider = document.getElementById("time"), play = document.getElementById("play");
const at = ([x, y]) => [x * scale, side - y * scale];
let playing = true;
slider.max = replay.frames.length - 1;
function line(from, to, colour, width) {
  context.strokeStyle = colour; context.lineWidth = width;
  context.beginPath(); context.moveTo(...at(from)); context.lineTo(...at(to)); context.stroke();
}
function draw() {
  const frame = replay.frames[slider.value], nodes = [...replay.sensors, ...frame.mobiles];
  context.clearRect(0, 0, side, side);
  for (const [a, b] of replay.links) line(nodes[a], nodes[b], "#eee", 1);
  for (const [kind, a, b, count] of frame.lines)
    line(nodes[a], nodes[b], replay.lines[kind], Math.min(4, 1 + count / 10));
  replay.sensors.forEach((place, i) => {
    context.fillStyle = replay.colours[i];
    context.beginPath();
    context.arc(...at(place), 2.5 + 6.5 * frame.queued[i] / replay.queue, 0, 7);
    context.fill();
    if (frame.heads.includes(i)) { context.strokeStyle = "#000"; context.lineWidth = 1.5; context.stroke(); }
  });
  context.fillStyle = "#000";
  for (const place of frame.mobiles) { const [x, y] = at(place); context.fillRect(x - 5, y - 5, 10, 10); }
  document.getElementById("caption").textContent = frame.caption;
}
slider.oninput = draw;
play.onclick = () => { playing = !playing; play.textContent = playing ? "Pause" : "Play"; };
setInterval(() => {
  if (playing) { slider.value = (Number(slider.value) + 1) % replay.frames.length; draw(); }
}, 150);
draw();
</script>
</html>
"""


def replay_page(replay: Replay) -> str:
    """The page of a replay."""
    data = {
        "area": replay.parameters.area,
        "queue": replay.parameters.queue,
        "sensors": replay.sensors,
        "links": replay.links,
        "colours": [colour(group) for group in replay.groups],
        "lines": LINES,
        "frames": [{**asdict(frame), "caption": caption(replay, frame)} for frame in replay.frames],
    }
    title = f"A run of {replay.protocol}, seed {replay.seed}"
    page = _PAGE.replace("TITLE", title)
    for kind, shade in LINES.items():
        page = page.replace(kind.upper() + " }", shade + " }")
    return page.replace("DATA", json.dumps(data, separators=(",", ":")))
