import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BACKOFF_MS,
  Client,
  type ClientState,
  type Connection,
  delayAfter,
  NoServer,
  type ServerInfo,
  WINDOW_MS,
} from "../src/client";
import { PROTOCOL_VERSION } from "../src/protocol.gen";

const GOOD: ServerInfo = { name: "lyma", version: "0.1.0", protocol: PROTOCOL_VERSION };

class Stage {
  readonly states: ClientState[] = [];
  readonly timers: { ms: number; callback: () => void }[] = [];
  readonly crashes: (() => void)[] = [];
  started = 0;
  stopped = 0;
  time = 0;
  info: ServerInfo = GOOD;
  problem: Error | undefined;
  readonly client = new Client({
    connect: (closed) => {
      if (this.problem !== undefined) return Promise.reject(this.problem);
      this.crashes.push(closed);
      return Promise.resolve(this.connection());
    },
    tell: (state) => this.states.push(state),
    later: (ms, callback) => this.timers.push({ ms, callback }),
    now: () => this.time,
  });

  connection(): Connection {
    return {
      start: () => {
        this.started += 1;
        return Promise.resolve(this.info);
      },
      stop: () => {
        this.stopped += 1;
        return Promise.resolve();
      },
      request: (method) => Promise.resolve({ method } as never),
    };
  }
}

test("the server starts when it is first needed, once", async () => {
  const stage = new Stage();
  assert.equal(stage.client.isRunning, false);
  await Promise.all([stage.client.request("lyma/status", {}), stage.client.request("lyma/models", {})]);
  assert.equal(stage.started, 1);
  assert.deepEqual(
    stage.states.map(({ is }) => is),
    ["starting", "running"],
  );
});

test("after a crash it is started again, each time later, and in the end left alone", async () => {
  const stage = new Stage();
  await stage.client.ready();
  for (const ms of BACKOFF_MS) {
    stage.crashes.at(-1)?.();
    assert.deepEqual(stage.states.at(-1), { is: "crashed", retryMs: ms });
    stage.timers.at(-1)?.callback();
    await stage.client.ready();
  }
  stage.crashes.at(-1)?.();
  assert.deepEqual(stage.states.at(-1), { is: "crashed", retryMs: undefined });
  assert.equal(stage.timers.length, BACKOFF_MS.length);
  await stage.client.request("lyma/status", {}); // a person may ask again
  assert.equal(stage.started, BACKOFF_MS.length + 2);
});

test("crashes long ago do not count", () => {
  assert.equal(delayAfter([0, 1, 2], 3), BACKOFF_MS[3]);
  assert.equal(delayAfter([0, 1, 2], WINDOW_MS + 2), BACKOFF_MS[0]);
});

test("a process that ends because it was stopped is no crash", async () => {
  const stage = new Stage();
  await stage.client.ready();
  const stopping = stage.client.stop();
  stage.crashes[0]?.();
  await stopping;
  assert.equal(stage.stopped, 1);
  assert.deepEqual(stage.states.at(-1), { is: "stopped" });
});

test("leaving waits for the stop, and nothing starts after it", async () => {
  const stage = new Stage();
  await stage.client.ready();
  await stage.client.leave();
  assert.equal(stage.stopped, 1);
  await assert.rejects(stage.client.ready(), NoServer);
  assert.equal(stage.started, 1);
});

test("a server of another protocol is stopped and can be replaced", async () => {
  const stage = new Stage();
  stage.info = { name: "lyma", version: "0.0.1", protocol: 0 };
  await assert.rejects(
    stage.client.ready(),
    (problem) => problem instanceof NoServer && problem.remedy === "install" && problem.message.includes("0.0.1"),
  );
  assert.equal(stage.stopped, 1);
  stage.info = GOOD;
  await stage.client.ready();
});

test("a missing server is told as it is, any other mishap with the way to the log", async () => {
  const stage = new Stage();
  stage.problem = new NoServer("missing", "install");
  await assert.rejects(stage.client.ready(), (problem) => problem === stage.problem);
  stage.problem = new Error("spawn EACCES\n at somewhere");
  await assert.rejects(
    stage.client.ready(),
    (problem) => problem instanceof NoServer && problem.remedy === "log" && !problem.message.includes("\n"),
  );
});
