import assert from "node:assert/strict";
import { test } from "node:test";
import { CHARACTER_LIMIT, Feed, TURN_LIMIT } from "../src/feed";
import type { Event, EventBody } from "../src/protocol.gen";
import { Turns } from "../src/turns";
import type { PageEvent } from "../src/view/messages";

function event(body: EventBody, turn = "t1", session = "s1"): Event {
  return { session, turn, seq: 1, ...body };
}

const delta = (text: string, turn = "t1") => event({ type: "item.delta", item: "i1", text }, turn);

function stage() {
  const sent: (readonly PageEvent[])[] = [];
  const timers: (() => void)[] = [];
  const feed = new Feed({ send: (events) => sent.push(events), later: (_ms, callback) => timers.push(callback) });
  const tick = () => {
    timers.shift()?.();
  };
  return { feed, sent, timers, tick };
}

test("the first event is sent at once, what follows soon is sent together", () => {
  const { feed, sent, tick } = stage();
  for (const text of ["a", "b", "c"]) feed.add(delta(text));
  assert.deepEqual(sent, [[delta("a")]]);
  tick();
  assert.deepEqual(sent[1], [delta("bc")]);
  tick();
  assert.equal(sent.length, 2);
  feed.add(delta("d"));
  assert.deepEqual(sent[2], [delta("d")]);
});

test("deltas join only those of their own item and turn", () => {
  const { feed, tick, sent } = stage();
  feed.add(delta("x"));
  feed.add(delta("a"));
  feed.add(event({ type: "item.delta", item: "i2", text: "b" }));
  feed.add(delta("c", "t2"));
  tick();
  assert.equal(sent[1]?.length, 3);
});

test("a page that comes late gets the whole, and the whole item instead of its deltas", () => {
  const { feed } = stage();
  feed.add(event({ type: "item.started", item: { kind: "text", id: "i1", text: "" } }));
  feed.add(delta("a"));
  feed.add(event({ type: "item.completed", item: { kind: "text", id: "i1", text: "ab" } }));
  assert.deepEqual(
    feed.all().map(({ type }) => type),
    ["item.completed"],
  );
});

test("what is kept is bounded, the latest turn stays", () => {
  const { feed } = stage();
  for (let turn = 0; turn < TURN_LIMIT + 20; turn += 1) feed.add(delta("x", `t${turn}`));
  assert.equal(feed.all().length, TURN_LIMIT);
  for (let turn = 0; turn < 12; turn += 1) feed.add(delta("y".repeat(CHARACTER_LIMIT / 8), `big${turn}`));
  const texts = feed.all().map((each) => (each.type === "item.delta" ? each.text.length : 0));
  assert.ok(texts.reduce((sum, length) => sum + length, 0) <= CHARACTER_LIMIT);
  assert.equal(feed.all().at(-1)?.turn, "big11");
});

test("twenty thousand deltas cost little", () => {
  const { feed, tick } = stage();
  const begun = performance.now();
  for (let number = 0; number < 20_000; number += 1) {
    feed.add(delta(`word ${number} `));
    if (number % 500 === 0) tick();
  }
  assert.ok(performance.now() - begun < 10_000, `${performance.now() - begun} ms`);
  assert.equal(feed.all().length, 1);
});

const started = (turn: string, session: string) =>
  event({ type: "turn.started", prompt: "p", sent: [] }, turn, session);

test("the events of a turn go to whoever asked, those of others elsewhere", () => {
  const heard: string[] = [];
  const turns = new Turns((each) => heard.push(`others ${each.turn}`));
  const release = turns.expect(undefined, (each) => heard.push(`new ${each.turn}`));
  turns.expect("s2", (each) => heard.push(`s2 ${each.turn}`));
  turns.hear(started("a", "s2"));
  turns.hear(started("b", "s9"));
  turns.hear(started("c", "s9"));
  turns.hear(delta("x", "b"));
  turns.hear(event({ type: "notice", text: "", level: "info", data: {} }, "b", "s9"));
  release();
  turns.hear(event({ type: "notice", text: "", level: "info", data: {} }, "b", "s9"));
  assert.deepEqual(heard, ["s2 a", "new b", "others c", "others b", "new b", "others b"]);
});

test("replayed events go to whoever loads that conversation, and to nobody else", () => {
  const heard: string[] = [];
  const turns = new Turns(() => heard.push("others"));
  turns.expect(undefined, () => heard.push("asked"));
  const release = turns.expectReplay("s1", () => heard.push("loaded"));
  turns.hear({ ...started("a", "s1"), replay: true });
  turns.hear({ ...started("a", "s2"), replay: true });
  release();
  turns.hear({ ...started("a", "s1"), replay: true });
  assert.deepEqual(heard, ["loaded"]);
});
