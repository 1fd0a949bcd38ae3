import assert from "node:assert/strict";
import { test } from "node:test";
import { describeDiagnostics, describeRun, readInput, rowsOf, subject } from "../src/agents";
import { collectContext, describeFailure, DIAGNOSTIC_LIMIT } from "../src/ask";
import { NoServer } from "../src/client";
import type { AgentRun, Diagnostic, Event, Usage } from "../src/protocol.gen";
import { describeUndo, sessionChoices } from "../src/sessions";
import { describeModels, describeStatus, StatusLine } from "../src/status";
import { cardText, cardTitle, money, routeNote, sentNote, stopNote, usageNote } from "../src/view/cards";

const USAGE: Usage = { inputTokens: 1812, outputTokens: 9, cachedTokens: 0, costMicros: 2571, estimated: false };
const HASH = "sha256:3f9a12cc04ee25a1";

test("an attempt is told as a person would", () => {
  const attempt = {
    provider: "alpha",
    model: "m",
    class: "rate_limit",
    next: "rotate",
    ms: 180,
    key: "…ab21",
    status: 429,
  } as const;
  assert.equal(routeNote(attempt), "alpha key …ab21: rate limit (429); next key");
  assert.equal(routeNote({ ...attempt, class: "ok", next: "done", ms: 930 }), "alpha key …ab21 answered in 0.9 s (m)");
  assert.match(routeNote({ ...attempt, next: "wait", retryAfterMs: 12_000 }), /may be asked again in 12 s; waiting/);
});

test("money, usage and what was sent are told exactly", () => {
  assert.equal(money(2571), "$0.0026");
  assert.equal(money(12_345_678), "$12.35");
  assert.equal(usageNote(USAGE), "$0.0026 · 1,812 in, 9 out");
  assert.equal(usageNote({ inputTokens: 1, outputTokens: 2, cachedTokens: 0, estimated: true }), "about 1 in, 2 out");
  assert.equal(sentNote({ what: "a\u202e.py", characters: 1204 }), "a[U+202E].py (1,204 characters)");
  assert.equal(stopNote("cancelled"), "Stopped.");
  assert.equal(stopNote("end_turn"), "");
});

test("a card's head says what it is, its body is what was sent", () => {
  const diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n+more";
  const edit = { kind: "edit", id: "1", call: "c", path: "a.py", uri: "file:///a.py", diff, applied: true } as const;
  assert.equal(cardTitle(edit), "Changed a.py +2 −1");
  assert.equal(cardTitle({ ...edit, applied: false, diff: "" }), "Not changed a.py");
  assert.equal(cardTitle({ ...edit, applied: false }, false), "Changing a.py +2 −1");
  assert.equal(cardText(edit), diff);
  const call = { kind: "tool_call", id: "1", name: "read_file", arguments: { path: "a\nb" } } as const;
  assert.equal(cardTitle(call), "read_file a b");
  assert.equal(cardText({ ...call, arguments: {} }), "");
  assert.equal(
    cardTitle({ kind: "command_output", id: "1", call: "c", command: "ls", text: "", exitStatus: 2 }),
    "$ ls  → 2",
  );
  assert.equal(
    cardTitle({ kind: "run", id: "1", run: "r", hash: HASH, name: "tidy", path: ["root"], status: "ok", text: "" }),
    "Agent root › tidy: ok",
  );
});

test("the tree shows what there is, with the actions of package.json", () => {
  assert.deepEqual(rowsOf({ drafts: [], agents: [], runs: [], questions: [] }), []);
  const rows = rowsOf({
    drafts: [{ uri: "file:///w/agent.toml", path: "agent.toml" }],
    agents: [{ hash: HASH, name: "tidy", purpose: "tidies", approval: "approved" }],
    runs: [{ run: "r1", hash: HASH, name: "tidy", path: ["root"] }],
    questions: [{ hash: HASH, title: "Approve?", path: [] }],
  });
  assert.deepEqual(
    rows.map(({ label }) => label),
    ["Questions", "Runs", "Agents", "Drafts"],
  );
  assert.deepEqual(
    rows.map(({ children }) => children?.[0]?.kind),
    ["question", "run", "approved", "draft"],
  );
  const [question, run, agent, draft] = rows.map(({ children }) => children?.[0]);
  assert.equal(subject(question, "question"), HASH);
  assert.equal(subject(run, "run"), "r1");
  assert.equal(subject(agent, "agent"), HASH);
  assert.equal(subject(draft, "draft"), "file:///w/agent.toml");
  assert.equal(subject(draft, "agent"), undefined);
  assert.equal(subject(undefined, "agent"), undefined);
  assert.ok(agent?.description?.includes("sha256:3f9a12cc04ee"));
});

test("a run's output stays in its fence", () => {
  const run: AgentRun = {
    run: "r1", hash: HASH, status: "ok", output: "```\n[x](command:y)", edits: [], left: ["b.py"],
    usage: { turns: 1, tokensIn: 2, tokensOut: 3, costMicros: 4, wallMs: 1500 },
  }; // prettier-ignore
  const text = describeRun(run);
  assert.match(text, /````json\n"```\\n\[x\]\(command:y\)"\n````/);
  assert.match(text, /not changed: b\.py/);
  assert.deepEqual(readInput('{"a": 1}'), { a: 1 });
  assert.equal(readInput("plain words"), "plain words");
  const wrong = { code: "c", path: "p", message: "Too much.", hint: "Ask for less.", file: "agent.toml", line: 3 };
  assert.equal(describeDiagnostics([wrong, wrong]), "agent.toml:3: Too much. Ask for less. (1 more)");
  assert.equal(describeDiagnostics([]), "It could not be compiled.");
});

test("an error is told with what helps, by its kind", () => {
  const missing = describeFailure({ message: "No key.", data: { kind: "config_error" } });
  assert.equal(missing.action, "addKey");
  assert.match(missing.hint, /started from a desktop/);
  assert.equal(describeFailure(new NoServer("gone", "log")).action, "showLog");
  assert.deepEqual(describeFailure({ message: "a\u202eb", data: { kind: "unheard_of" } }), {
    message: "a[U+202E]b",
    kind: "unheard_of",
    hint: "",
  });
  assert.equal(describeFailure("a word").message, "a word");
});

const position = (line: number) => ({ line, character: 0 });
const trouble = (line: number): Diagnostic => ({
  uri: "u",
  range: { start: position(line), end: position(line) },
  message: `at ${line}`,
});

test("the selection, what is open and the trouble in the selection travel along", () => {
  const all = Array.from({ length: 100 }, (_, line) => trouble(line));
  const screen = (first: number, last: number) => ({
    active: () => ({ uri: "u", version: 1, selections: [{ start: position(first), end: position(last) }] }),
    visible: () => [{ uri: "u", version: 1 }],
    diagnostics: () => all,
  });
  const context = collectContext(screen(10, 12));
  assert.deepEqual(
    context.diagnostics?.map(({ message }) => message),
    ["at 10", "at 11", "at 12"],
  );
  assert.equal(collectContext(screen(500, 500)).diagnostics?.length, DIAGNOSTIC_LIMIT);
  assert.deepEqual(collectContext({ ...screen(0, 0), active: () => undefined }), {
    active: null,
    documents: [{ uri: "u", version: 1 }],
    diagnostics: [],
  });
});

test("the status bar sums what is known and says when something is not", () => {
  const line = new StatusLine();
  const place = { session: "s", seq: 1 };
  const done = (turn: string, usage: Usage): Event => ({
    ...place,
    turn,
    type: "turn.completed",
    stopReason: "end_turn",
    usage,
  });
  assert.equal(line.line().text, "$(comment) Lyma");
  line.hear({ ...place, turn: "1", type: "route", provider: "alpha", model: "m", class: "ok", next: "done", ms: 1 });
  line.hear({ ...place, turn: "1", type: "usage", usage: USAGE });
  line.hear(done("1", USAGE));
  line.hear(done("2", USAGE));
  line.hear({ ...done("3", USAGE), replay: true });
  assert.equal(line.line().text, "$(comment) Lyma · alpha · $0.0051");
  line.hear(done("4", { inputTokens: 1, outputTokens: 1, cachedTokens: 0, estimated: false }));
  assert.match(line.line().text, /≥ \$0\.0051/);
  line.tell({ is: "crashed", retryMs: 500 });
  assert.match(line.line().tooltip, /stopped/);
});

test("the state of the house and the models are tables", () => {
  const provider = {
    name: "alpha", api: "a", model: "m", breaker: "half_open", baseUrl: "http://x", tokensToday: 5, costMicrosToday: null,
    keys: [{ key: "…ab21", state: "cooling", until: "2026-11-30T10:00:00Z", reason: "rate limit" }],
  } as const; // prettier-ignore
  const text = describeStatus({
    version: "0.1.0",
    protocol: 1,
    home: "/h",
    providers: [{ ...provider, keys: [...provider.keys] }],
    roots: [],
    sandbox: "bubblewrap",
  });
  assert.match(text, /## alpha, passed over \(half open\)/);
  assert.match(text, /- key …ab21: cooling \(until 2026-11-30T10:00:00Z, rate limit\)/);
  assert.match(text, /cost unknown/);
  const models = describeModels({
    models: [{ provider: "alpha", id: "m", contextTokens: 200_000, inputMicros: 3_000_000 }],
    failures: [{ provider: "b", message: "b is out." }],
  });
  assert.match(models, /\| alpha \| m \| 200,000 \| \$3\.00 \| {2}\|/);
  assert.match(models, /b is out\./);
});

test("conversations of this folder come first; an undo says what was kept", () => {
  const session = (name: string, root: string | null) => ({
    session: name,
    title: name,
    root,
    created: "",
    updated: "2026-11-30T10:20:30Z",
    turns: 1,
  });
  const choices = sessionChoices([session("a", null), session("b", "file:///srv/project")], ["/srv/project"]);
  assert.deepEqual(
    choices.map(({ label }) => label),
    ["b", "a"],
  );
  assert.equal(choices[0]?.description, "2026-11-30 10:20 · 1 turn");
  const files = [
    { uri: "u", outcome: "restored" },
    { uri: "v", outcome: "kept", reason: "changed since" },
  ] as const;
  assert.equal(describeUndo([...files]), "1 file is as before the turn. Kept 1: changed since");
});
