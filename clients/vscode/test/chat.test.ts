import assert from "node:assert/strict";
import { test } from "node:test";
import { Chat, createParticipant } from "../src/ask";
import { NoServer } from "../src/client";
import { Feed } from "../src/feed";
import type { Event } from "../src/protocol.gen";
import { Turns } from "../src/turns";
import type { PageEvent, ToPage } from "../src/view/messages";

interface Request {
  method: string;
  params: Record<string, unknown>;
  cancelled: boolean;
  resolve: (value: unknown) => void;
  reject: (problem: unknown) => void;
}

class Stage {
  readonly requests: Request[] = [];
  readonly sent: ToPage[] = [];
  readonly opened: string[] = [];
  readonly acted: string[] = [];
  readonly memory = new Map<string, unknown>();
  readonly missing: NoServer[] = [];
  remedied: Promise<unknown> = Promise.resolve(undefined);
  readonly turns = new Turns(() => undefined);
  readonly feed = new Feed({ send: (events) => this.sent.push({ type: "events", events }), later: () => undefined });
  readonly client = {
    request: (method: string, params: unknown, stop?: { onCancellationRequested: (listener: () => void) => unknown }) =>
      new Promise((resolve, reject) => {
        const request = { method, params: params as Record<string, unknown>, cancelled: false, resolve, reject };
        stop?.onCancellationRequested(() => (request.cancelled = true));
        this.requests.push(request);
      }),
  };
  readonly editor = {
    active: () => undefined,
    visible: () => [],
    diagnostics: () => [],
    canceller: () => {
      const listeners: (() => void)[] = [];
      const onCancellationRequested = (listener: () => void) => {
        listeners.push(listener);
        return { dispose: () => undefined };
      };
      return {
        token: { isCancellationRequested: false, onCancellationRequested },
        cancel: () => {
          listeners.forEach((each) => {
            each();
          });
        },
        dispose: () => undefined,
      };
    },
    recall: (name: string) => this.memory.get(name),
    remember: (name: string, value: unknown) => {
      this.memory.set(name, value);
      return Promise.resolve();
    },
    open: (uri: string) => {
      this.opened.push(uri);
      return Promise.resolve();
    },
    run: () => Promise.resolve(undefined),
    log: { error: () => undefined },
    setting: () => undefined,
  };
  chat = this.window();

  window(): Chat {
    return new Chat({
      client: this.client,
      turns: this.turns,
      feed: this.feed,
      editor: this.editor,
      page: { send: (message: ToPage) => this.sent.push(message) },
      act: (action: string) => this.acted.push(action),
      noServer: (problem: NoServer) => {
        this.missing.push(problem);
        return this.remedied;
      },
    } as never);
  }

  get shown(): PageEvent[] {
    return this.feed.all();
  }

  last(): Request {
    const request = this.requests.at(-1);
    assert.ok(request);
    return request;
  }
}

const started = (session: string, turn: string, replay?: boolean): Event => ({
  session,
  turn,
  seq: 1,
  type: "turn.started",
  prompt: "p",
  sent: [],
  ...(replay === true ? { replay } : {}),
});

test("an ask goes on with the conversation, and the next window knows it", async () => {
  const stage = new Stage();
  const asked = stage.chat.ask("hello");
  assert.equal(stage.last().params.session, null);
  stage.turns.hear(started("s1", "t1"));
  assert.equal(stage.chat.isBusy, true);
  stage.last().resolve({ session: "s1" });
  await asked;
  assert.equal(stage.chat.isBusy, false);
  void stage.chat.ask("more");
  assert.equal(stage.last().params.session, "s1");
  assert.equal(stage.window().session, "s1");
});

test("one ask at a time; stop cancels it and waits for its end", async () => {
  const stage = new Stage();
  const first = stage.chat.ask("one");
  await stage.chat.ask("two");
  assert.equal(stage.requests.length, 1);
  assert.equal(stage.shown.at(-1)?.type, "failed");
  stage.chat.stop();
  assert.equal(stage.last().cancelled, true);
  assert.equal(stage.chat.isBusy, true);
  stage.last().resolve({});
  await first;
  assert.equal(stage.chat.isBusy, false);
});

test("an empty prompt asks nothing", async () => {
  const stage = new Stage();
  await stage.chat.ask("  \n");
  assert.equal(stage.requests.length, 0);
});

test("a failure is shown in the view; a missing server also offers help", async () => {
  const stage = new Stage();
  const asked = stage.chat.ask("hello");
  stage.last().reject({ message: "No key.", data: { kind: "config_error" } });
  await asked;
  const failed = stage.shown.at(-1);
  assert.ok(failed?.type === "failed");
  assert.equal(failed.action, "addKey");
  const again = stage.chat.ask("hello");
  stage.last().reject(new NoServer("missing", "install"));
  await again;
  assert.equal(stage.missing.length, 1);
  assert.equal(stage.requests.length, 2);
});

/** Ask where no server is; what is returned brings one. */
async function askInVain(stage: Stage): Promise<(came: unknown) => void> {
  let come: (came: unknown) => void = () => undefined;
  stage.remedied = new Promise((resolve) => (come = resolve));
  const asked = stage.chat.ask("hello");
  stage.last().reject(new NoServer("missing", "install"));
  await asked;
  return come;
}

test("what was asked where no server was is asked when it has come", async () => {
  const stage = new Stage();
  const come = await askInVain(stage);
  come(true);
  await new Promise(setImmediate);
  assert.deepEqual(
    stage.requests.map((each) => each.params.prompt),
    ["hello", "hello"],
  );
});

test("who left the conversation before the answer that there is no server is not asked for again", async () => {
  const stage = new Stage();
  stage.remedied = Promise.resolve(true);
  const asked = stage.chat.ask("hello");
  const request = stage.last();
  await stage.chat.startOver();
  request.reject(new NoServer("missing", "install"));
  await asked;
  await new Promise(setImmediate);
  assert.equal(stage.missing.length, 0);
  assert.equal(stage.requests.length, 1);
});

test("who went on without the server is not asked for again", async () => {
  const stage = new Stage();
  const come = await askInVain(stage);
  void stage.chat.ask("something else");
  come(true);
  await new Promise(setImmediate);
  assert.equal(stage.requests.length, 2);
});

test("a conversation that is gone is left, so that the next ask begins a new one", async () => {
  const stage = new Stage();
  stage.memory.set("session", "old");
  stage.chat = stage.window();
  const asked = stage.chat.ask("hello");
  stage.last().reject({ message: "gone", data: { kind: "session_not_found" } });
  await asked;
  assert.equal(stage.chat.session, undefined);
});

test("a new conversation stops the old one, whose events are not shown any more", async () => {
  const stage = new Stage();
  void stage.chat.ask("long");
  stage.turns.hear(started("s1", "t1"));
  await stage.chat.startOver();
  assert.equal(stage.last().cancelled, true);
  stage.turns.hear({ session: "s1", turn: "t1", seq: 2, type: "item.delta", item: "i", text: "late" });
  assert.deepEqual(stage.shown, []);
  void stage.chat.ask("fresh");
  assert.equal(stage.last().params.session, null);
});

test("a page of a new window shows the conversation again; a page that only moved needs no server", async () => {
  const stage = new Stage();
  stage.memory.set("session", "s1");
  stage.chat = stage.window();
  const ready = stage.chat.hearPage({ type: "ready", session: "s1" });
  assert.deepEqual(stage.last().params, { action: "load", session: "s1" });
  stage.turns.hear(started("s1", "t1", true));
  stage.last().resolve({ sessions: [], files: [] });
  await ready;
  assert.equal(stage.shown.length, 1);
  await stage.chat.hearPage({ type: "ready", session: "s1" });
  assert.equal(stage.requests.length, 1);
  assert.equal(stage.sent.at(-1)?.type, "reset");
});

test("a page that shows nothing starts nothing", async () => {
  const stage = new Stage();
  await stage.chat.hearPage({ type: "ready", session: "" });
  assert.equal(stage.requests.length, 0);
});

test("the page can ask, stop, open a file and press the known buttons, and no more", async () => {
  const stage = new Stage();
  void stage.chat.hearPage({ type: "ask", prompt: "hello" });
  await stage.chat.hearPage({ type: "stop" });
  assert.equal(stage.last().cancelled, true);
  await stage.chat.hearPage({ type: "open", uri: "file:///a.py" });
  await stage.chat.hearPage({ type: "open", uri: "command:workbench.action.quit" });
  await stage.chat.hearPage({ type: "action", action: "addKey" });
  assert.deepEqual(stage.opened, ["file:///a.py"]);
  assert.deepEqual(stage.acted, ["addKey"]);
});

test("the native chat gets the answer's text, inert, in a conversation of its own", async () => {
  const stage = new Stage();
  const participant = createParticipant(stage.client as never, stage.turns, stage.editor);
  const said: string[] = [];
  const reply = { markdown: (text: string) => said.push(text), progress: (text: string) => said.push(`(${text})`) };
  const asked = participant.ask("hello", undefined, reply, stage.editor.canceller().token);
  const place = { session: "s7", turn: "t1", seq: 1 };
  const call = { kind: "tool_call", id: "i1", name: "read_file", arguments: {} } as const;
  stage.turns.hear(started("s7", "t1"));
  stage.turns.hear({ ...place, type: "item.started", item: { kind: "thinking", id: "i0", text: "" } });
  stage.turns.hear({ ...place, type: "item.delta", item: "i0", text: "hm" });
  stage.turns.hear({ ...place, type: "item.started", item: call });
  stage.turns.hear({ ...place, type: "item.started", item: { kind: "text", id: "i2", text: "" } });
  stage.turns.hear({ ...place, type: "item.delta", item: "i2", text: "Hello\u202e\u001b[31m" });
  stage.last().resolve({});
  assert.equal(await asked, "s7");
  assert.deepEqual(said, ["(read_file)", "Hello[U+202E]␛[31m"]);
  const more = participant.ask("more", "s7", reply, stage.editor.canceller().token);
  assert.equal(stage.last().params.session, "s7");
  stage.last().reject({ message: "It is gone.", data: { kind: "session_not_found" } });
  assert.equal(await more, undefined); // the next ask of this chat begins anew
  assert.match(said.at(-1) ?? "", /It is gone/);
  const other = participant.ask("another chat", undefined, reply, stage.editor.canceller().token);
  assert.equal(stage.last().params.session, null);
  stage.last().resolve({});
  await other;
});
