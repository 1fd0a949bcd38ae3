import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApprovalEditor, Approvals, shortHash } from "../src/approve";
import type { RequestApprovalParams } from "../src/protocol.gen";

const HASH = "sha256:3f9a12cc04ee25a1f8a7a5a0a8a4a1a7a5b0c6d5e4f3a2b1c0d9e8f7a6b5c4d3";
const PARAMS: RequestApprovalParams = {
  hash: HASH,
  nonce: "n0nce",
  title: "Approve tidy?\n\u202eyes",
  summary: "tidy: tidies",
  text: "May write everything.\u202e",
  manifest: {},
  path: ["root", "helper"],
};

class Stage implements ApprovalEditor {
  readonly answers: (string | undefined | Promise<string | undefined>)[] = [];
  readonly questions: { message: string; detail: string; labels: string[] }[] = [];
  readonly opened: string[] = [];
  readonly closed: string[] = [];
  readonly told: string[] = [];
  text: (path: string) => string = () => "";
  later: (() => unknown) | undefined;
  log = { error: () => undefined } as unknown as ApprovalEditor["log"];
  private withdraw: (() => void)[] = [];

  confirm = async (message: string, detail: string, ...labels: string[]) => {
    this.questions.push({ message, detail, labels });
    return this.answers.shift();
  };
  warn = (message: string, ...buttons: { label: string; run: () => unknown }[]) => {
    this.told.push(message);
    this.later = buttons[0]?.run;
    return Promise.resolve();
  };
  info = (message: string) => {
    this.told.push(message);
    return Promise.resolve();
  };
  open = (uri: string) => {
    this.opened.push(uri);
    return Promise.resolve();
  };
  close = (uri: string) => {
    this.closed.push(uri);
    return Promise.resolve();
  };
  provide = (scheme: string, text: (path: string) => string) => {
    this.text = text;
    return { uri: (path: string) => `${scheme}:${path}` };
  };

  readonly approvals = new Approvals(this, () => undefined);

  ask(params = PARAMS) {
    const token = {
      isCancellationRequested: false,
      onCancellationRequested: (listener: () => void) => {
        this.withdraw.push(listener);
        return { dispose: () => undefined };
      },
    };
    return this.approvals.answer(params, token);
  }

  withdrawn(): void {
    for (const listener of this.withdraw) listener();
  }
}

const APPROVE = "Approve sha256:3f9a12cc04ee…";

test("only the button that names the hash says yes; the answer echoes hash and nonce", async () => {
  const stage = new Stage();
  stage.answers.push(APPROVE);
  assert.deepEqual(await stage.ask(), { hash: HASH, nonce: "n0nce", approved: true });
  const [question] = stage.questions;
  assert.deepEqual(question?.labels, ["Read First", "Reject", APPROVE]);
  assert.equal(question.message, "Approve tidy? [U+202E]yes");
  assert.ok(question.detail.includes(HASH));
  assert.ok(question.detail.includes("root › helper"));
  assert.ok(!question.detail.includes("n0nce"));
});

test("reject is no, and any other end of the dialog is no answer at all", async () => {
  const stage = new Stage();
  stage.answers.push("Reject", undefined, "Approve sha256:000000000000…", "");
  assert.deepEqual(await stage.ask(), { hash: HASH, nonce: "n0nce", approved: false });
  assert.equal(await stage.ask(), null);
  assert.equal(await stage.ask(), null);
  assert.equal(await stage.ask(), null);
});

test("the document is open before the question, holds everything, and is closed after it", async () => {
  const stage = new Stage();
  stage.answers.push("Reject");
  const asked = stage.ask();
  const path = [...stage.approvals.waiting].length;
  assert.equal(path, 1);
  await asked;
  assert.equal(stage.opened.length, 1);
  assert.deepEqual(stage.closed, stage.opened);
  assert.match(stage.opened[0] ?? "", /^lyma-agent:\/sha256-3f9a12cc04ee\/1\/agent\.txt$/);
  assert.equal(stage.text((stage.opened[0] ?? "").slice("lyma-agent:".length)), "This question is settled.\n");
});

test("the text is shown whole, with what hides in it made visible", async () => {
  const stage = new Stage();
  let shown = "";
  stage.confirm = (message, detail, ...labels) => {
    stage.questions.push({ message, detail, labels });
    shown = stage.text((stage.opened[0] ?? "").slice("lyma-agent:".length));
    return Promise.resolve("Reject");
  };
  await stage.ask();
  assert.match(shown, /May write everything\.\[U\+202E\]/);
  assert.ok(shown.includes(HASH));
});

test("who reads first is asked again, and may then say yes", async () => {
  const stage = new Stage();
  stage.answers.push("Read First", APPROVE);
  const asked = stage.ask();
  while (stage.later === undefined) await new Promise(setImmediate);
  assert.equal(stage.questions.length, 1);
  stage.later();
  assert.deepEqual(await asked, { hash: HASH, nonce: "n0nce", approved: true });
  assert.equal(stage.approvals.askAgain(), false);
});

test("a question that is withdrawn is unanswered, whatever is pressed later", async () => {
  const stage = new Stage();
  let press: (label: string) => void = () => undefined;
  stage.answers.push(new Promise((resolve) => (press = resolve)));
  const asked = stage.ask();
  while (stage.questions.length === 0) await new Promise(setImmediate);
  stage.withdrawn();
  press(APPROVE);
  assert.equal(await asked, null);
  assert.match(stage.told[0] ?? "", /was withdrawn/);
});

test("two questions are asked one after the other", async () => {
  const stage = new Stage();
  let press: (label: string | undefined) => void = () => undefined;
  stage.answers.push(new Promise((resolve) => (press = resolve)), "Reject");
  const first = stage.ask();
  const second = stage.ask({ ...PARAMS, hash: HASH.replace("3f", "40"), nonce: "other" });
  while (stage.questions.length === 0) await new Promise(setImmediate);
  assert.equal(stage.questions.length, 1);
  press(undefined);
  assert.equal(await first, null);
  assert.deepEqual(await second, { hash: HASH.replace("3f", "40"), nonce: "other", approved: false });
});

test("two questions about one agent are both answered", async () => {
  const stage = new Stage();
  stage.answers.push("Reject", APPROVE);
  const answers = await Promise.all([stage.ask(), stage.ask({ ...PARAMS, nonce: "other" })]);
  assert.deepEqual(
    answers.map((answer) => answer && [answer.nonce, answer.approved]),
    [
      ["n0nce", false],
      ["other", true],
    ],
  );
});

test("a hash is shortened as a person compares it", () => {
  assert.equal(shortHash(HASH), "sha256:3f9a12cc04ee");
  assert.equal(shortHash("abcdefabcdefabcdef"), "abcdefabcdef");
});
