"""The pure modules of the page, run in the browser: the parser of streams, texts of others, and figures."""

from __future__ import annotations

from tests.harness import NodeProcess
from tests.system.page.opened_page import OpenedPages

PARSE_AT_EVERY_SPLIT = """async (text) => {
  const { eventParser } = await import("./app/stream.js");
  const whole = JSON.stringify(eventParser().push(text));
  const differing = [];
  for (let split = 0; split <= text.length; split += 1) {
    const parser = eventParser();
    const found = [...parser.push(text.slice(0, split)), ...parser.push(text.slice(split))];
    if (JSON.stringify(found) !== whole) differing.push(split);
  }
  const parser = eventParser();
  const single = JSON.stringify([...text].flatMap((character) => parser.push(character)));
  return { whole: JSON.parse(whole), differing, single: single === whole };
}"""
CALL = """async ([module, name, ...values]) => {
  const found = await import(`./app/${module}.js`);
  return values.map((value) => found[name](value));
}"""
TIMES_OF_AXES = """async (spans) => {
  const { default: uPlot } = await import("./vendor/uPlot.esm.js");
  const { coloursAt, plotOptions } = await import("./app/parts/plot.js");
  const probe = document.createElement("div");
  document.body.append(probe);
  const found = [];
  for (const span of spans) {
    const from = 1700000003.25;
    const [colours, series] = [coloursAt(probe), []];
    const look = () => ({ top: 1, span: [from, from + span], series, format: String });
    const options = plotOptions({ width: 400, height: 100, series, colours, look, utc: true, moved() {} });
    const plot = new uPlot(options, [[from, from + span]], probe);
    await new Promise(requestAnimationFrame);
    found.push(plot.axes[0]._values);
    plot.destroy();
  }
  return found;
}"""
STREAM = (
    ': a comment\n\nid: 7\ndata: {"a": 1}\n\n'
    "event: skipped\nid: 9\ndata: one\ndata: two\n\n"
    "data:without a blank\r\n\r\nunknown: x\n\n:\n\ndata: not complete"
)


async def test_a_stream_is_parsed_alike_however_its_bytes_arrive(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ready=False)
    found = await page.evaluate(PARSE_AT_EVERY_SPLIT, STREAM)
    assert found["differing"] == [] and found["single"]
    assert found["whole"] == [
        {"type": "message", "data": '{"a": 1}', "id": "7"},
        {"type": "skipped", "data": "one\ntwo", "id": "9"},
        {"type": "message", "data": "without a blank"},
    ]


async def test_a_stream_that_never_ends_a_line_is_given_up(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, ready=False)
    told = await page.evaluate(
        """async () => {
          const { eventParser } = await import("./app/stream.js");
          const parser = eventParser();
          try {
            for (let turn = 0; turn < 100; turn += 1) parser.push("x".repeat(100000));
          } catch (error) {
            return error.message;
          }
        }"""
    )
    assert "too large" in told


async def test_what_could_disguise_a_text_is_shown_by_its_number(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ready=False)
    texts = ["a\u202eb", "\u0000", "tab\tand\nline", "\u2066x\u2069", "京B34C91", "a\u00adb", None]
    shown = await page.evaluate(CALL, ["format", "visible", *texts])
    assert shown == ["a\\u202eb", "\\u0000", "tab\tand\nline", "\\u2066x\\u2069", "京B34C91", "a\\u00adb", ""]
    assert await page.evaluate(CALL, ["format", "oneLine", "two\nlines"]) == ["two lines"]


async def test_figures_are_short_and_axes_end_at_round_numbers(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ready=False)
    assert await page.evaluate(CALL, ["format", "niceCeiling", 0, 1, 1.1, 14, 37, 99, 100, 0.03]) == [
        1, 1, 2, 20, 50, 100, 100, 0.05,
    ]  # fmt: skip
    assert await page.evaluate(CALL, ["format", "count", None, 0, 1284]) == ["–", "0", "1,284"]
    assert await page.evaluate(CALL, ["format", "duration", 0.0000005, 0.0084, 41, 700, 90000]) == [
        "0.5 µs", "8.4 ms", "41 s", "11 min", "1 d",
    ]  # fmt: skip
    assert await page.evaluate(CALL, ["format", "bytes", 0, 999, 1500, 738_000_000]) == [
        "0 B", "999 B", "1.5 KB", "738 MB",
    ]  # fmt: skip


async def test_the_time_axis_of_a_plot_writes_no_time_twice(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ready=False)
    spans = [2, 3, 5, 7.5, 12, 30, 60, 300, 3600, 86400]
    axes = await page.evaluate(TIMES_OF_AXES, spans)
    for span, times in zip(spans, axes, strict=True):
        assert len(times) >= 2, (span, times)
        assert len(set(times)) == len(times), (span, times)


async def test_a_command_for_the_terminal_is_quoted(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, ready=False)
    command = await page.evaluate(
        """async () => {
          const { curl } = await import("./app/api.js");
          return curl("POST", "topics/a/events", { body: `{"it's": "$HOME"}`, query: { id: "a b" } });
        }"""
    )
    assert command == (
        "curl -s -X POST -H 'Content-Type: application/json' --data-raw "
        f"""'{{"it'\\''s": "$HOME"}}' '{node.base}/topics/a/events?id=a+b'"""
    )


async def test_links_of_a_node_that_is_lost_are_down(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, ready=False)
    traffic = {"state": "up", "rate": 1, "bytes": 10, "unconfirmed": 0, "by": "tcp"}
    pairs = [("one", "two"), ("one", "three"), ("two", "three"), ("three", "two")]

    async def states(state: str) -> dict[str, str]:
        nodes = [{"name": name, "state": "alive"} for name in ("one", "two")]
        cluster = {
            "clusters": [{"name": "c", "nodes": [*nodes, {"name": "three", "state": state}]}],
            "links": [{"from": one, "to": other, **traffic} for one, other in pairs],
        }
        [links] = await page.evaluate(CALL, ["topology/links", "joinedLinks", cluster])
        return {f"{link['from']}-{link['to']}": link["state"] for link in links}

    assert await states("alive") == {"one-three": "up", "one-two": "up", "three-two": "up"}
    for lost in ("dead", "left"):
        assert await states(lost) == {"one-three": "down", "one-two": "up", "three-two": "down"}


async def test_only_one_stream_of_a_tab_is_open(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, ready=False)
    found = await page.evaluate(
        """async () => {
          const { freezeStream, takeStream } = await import("./app/stream.js");
          const open = new Set();
          const stream = (name) => () => {
            open.add(name);
            return { close: () => open.delete(name) };
          };
          const seen = [];
          const look = () => seen.push([...open].join());
          const first = takeStream(stream("a"));
          look();
          const second = takeStream(stream("b"));
          look();
          freezeStream(true);
          look();
          const third = takeStream(stream("c"));
          look();
          second();
          freezeStream(false);
          look();
          third();
          look();
          first();
          look();
          return seen;
        }"""
    )
    assert found == ["a", "b", "", "", "c", "a", ""]
