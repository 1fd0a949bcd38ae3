// The page of the chat view. It draws events and sends back what the person does; every text goes in as text.
import type { Item } from "../protocol.gen";
import { Blocks, TEXT_LIMIT } from "./blocks";
import { cardText, cardTitle, routeNote, sentNote, stopNote, usageNote } from "./cards";
import { inert, oneLine } from "./inert";
import { type Node as MarkdownNode, render } from "./markdown";
import type { Action, FromPage, PageEvent, PageState, ToPage } from "./messages";
import { amend, element, grow } from "./tree";

declare function acquireVsCodeApi(): {
  postMessage(message: FromPage): void;
  setState(state: Saved): void;
  getState(): Saved | undefined;
};

interface Saved {
  readonly session: string;
  readonly draft: string;
}

/** How long one frame may draw, in milliseconds. */
const DRAW_MS = 5;
/** How many blocks of an answer stand in a group. */
const GROUP = 40;
/** The most characters and lines of a card's body; more of it is in the session. */
const CARD_LIMIT = 50_000;
const CARD_LINES = 2000;
/** The longest that the end of an answer may wait for being drawn again, in milliseconds, where drawing it is costly. */
const REST_MS = 100;
const ACTIONS: Readonly<Record<Action, string>> = { addKey: "Add Key", showLog: "Show Log" };

const api = acquireVsCodeApi();
const byId = (id: string) => document.getElementById(id) ?? document.body;
const log = byId("log");
const list = byId("turns");
const statusLine = byId("status");
const prompt = byId("prompt") as HTMLTextAreaElement;
const stop = byId("stop") as HTMLButtonElement;
const send = byId("send") as HTMLButtonElement;
let state: PageState = { status: "idle", showThinking: false, session: "" };

/** An item whose text is still coming. Nothing is drawn but once a frame. */
class Growing {
  private readonly blocks = new Blocks();
  private readonly done: string[] = [];
  private readonly tail = element("div", "block");
  private raw = "";
  private length = 0;
  private drawnTail: MarkdownNode[] = [];
  private notBefore = 0;
  private hidden: HTMLElement | undefined;
  private last: HTMLElement | undefined;

  constructor(private readonly root: HTMLElement) {
    root.append(this.tail);
  }

  push(text: string): void {
    if (this.length < TEXT_LIMIT) this.raw += text;
    this.length += text.length;
    this.done.push(...this.blocks.push(text));
    schedule(this);
  }

  /** Draw some of what is complete, then what may still grow. True: there is more to draw. */
  draw(until: number): boolean {
    while (this.done.length > 0 && performance.now() < until) {
      const block = element("div", "block");
      block.append(...render(this.done.shift() ?? "").map(grow));
      this.group().append(block);
    }
    const begun = performance.now();
    if (this.done.length > 0 || begun < this.notBefore) return true;
    const nodes = render(this.blocks.open);
    amend(this.tail, this.drawnTail, nodes);
    this.drawnTail = nodes;
    this.notBefore = begun + Math.min(REST_MS, 4 * (performance.now() - begun));
    if (this.blocks.hidden > 0) {
      this.hidden ??= this.root.appendChild(element("p", "note"));
      this.hidden.textContent = `${this.blocks.hidden.toLocaleString("en")} more characters are not shown.`;
    }
    return false;
  }

  /** Blocks stand in groups, and a group that is out of sight costs nothing: one by one they would cost more than they save. */
  private group(): HTMLElement {
    if (this.last === undefined || this.last.childElementCount >= GROUP) {
      this.last?.classList.add("whole");
      this.last = element("div", "group");
      this.tail.before(this.last);
    }
    return this.last;
  }

  /** Whether the text is what has been drawn already. */
  is(text: string): boolean {
    return this.length === text.length && text.startsWith(this.raw);
  }
}

/** A card whose body is plain text that may still grow. */
class Plain {
  private text = "";
  private waiting = "";

  constructor(private readonly body: HTMLElement) {}

  push(text: string): void {
    const fresh = clip(this.text + text).slice(this.text.length);
    this.text += fresh;
    this.waiting += fresh;
    if (fresh !== "") schedule(this);
  }

  draw(): boolean {
    this.body.append(inert(this.waiting));
    this.waiting = "";
    return false;
  }

  is(): boolean {
    return false;
  }
}

type Drawn = Growing | Plain;

const due = new Set<Drawn>();
let frame = 0;

function schedule(drawn: Drawn): void {
  due.add(drawn);
  if (frame === 0) frame = requestAnimationFrame(drawAll);
}

function drawAll(): void {
  frame = 0;
  const until = performance.now() + DRAW_MS;
  for (const drawn of due) if (!drawn.draw(until)) due.delete(drawn);
  if (due.size > 0) frame = requestAnimationFrame(drawAll);
}

/** The view follows what comes until the person scrolls back, and again once they are at the end. */
let isFollowing = true;
let lastTop = 0;

log.addEventListener("scroll", () => {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  if (isAtEnd) isFollowing = true;
  else if (log.scrollTop < lastTop) isFollowing = false;
  lastTop = log.scrollTop;
});
new ResizeObserver(() => {
  if (isFollowing) log.scrollTop = log.scrollHeight;
}).observe(list);

const turns = new Map<string, HTMLElement>();
const items = new Map<string, { root: HTMLElement; drawn: Drawn }>();

function turnOf(event: PageEvent): HTMLElement {
  const key = `${event.session} ${event.turn}`;
  let turn = turns.get(key);
  if (turn === undefined) {
    turn = list.appendChild(element("section", "turn"));
    turns.set(key, turn);
    for (const [old, section] of turns) {
      if (turns.size <= 60) break;
      section.remove();
      turns.delete(old);
    }
  }
  return turn;
}

function itemKey(event: PageEvent, item: string): string {
  return `${event.session} ${event.turn} ${item}`;
}

function start(event: PageEvent, item: Item): { root: HTMLElement; drawn: Drawn } {
  const made = item.kind === "text" ? startText() : startCard(item);
  if (item.kind === "edit") made.root.replaceChildren(...wholeCard(item, false).children);
  items.set(itemKey(event, item.id), made);
  turnOf(event).append(made.root);
  return made;
}

function startText(): { root: HTMLElement; drawn: Drawn } {
  const root = element("div", "answer");
  return { root, drawn: new Growing(root) };
}

function startCard(item: Item, isWhole = false): { root: HTMLDetailsElement; drawn: Drawn } {
  const root = element("details", `card ${item.kind}`) as HTMLDetailsElement;
  root.open = item.kind === "edit" || item.kind === "run" || (item.kind === "thinking" && state.showThinking);
  root.append(element("summary", "", cardTitle(item, isWhole)));
  if (item.kind === "edit") root.append(openButton(item.uri, item.path));
  const body = root.appendChild(element("pre"));
  return { root, drawn: new Plain(body) };
}

function openButton(uri: string, path: string): HTMLElement {
  const button = element("button", "small", "Open") as HTMLButtonElement;
  button.type = "button";
  button.setAttribute("aria-label", `Open ${oneLine(path)}`);
  button.addEventListener("click", () => api.postMessage({ type: "open", uri }));
  return button;
}

/** The item, whole: it stands over its deltas. */
function complete(event: PageEvent, item: Item): void {
  const key = itemKey(event, item.id);
  const before = items.get(key);
  items.delete(key);
  if (item.kind !== "text") {
    place(event, wholeCard(item), before?.root);
  } else if (before?.drawn.is(item.text) !== true && (before !== undefined || item.text !== "")) {
    const made = startText();
    made.drawn.push(item.text);
    place(event, made.root, before?.root);
  }
}

function wholeCard(item: Item, isWhole = true): HTMLElement {
  const { root } = startCard(item, isWhole);
  const text = cardText(item);
  const shown = clip(text);
  const hidden = text.length - shown.length;
  const body = root.querySelector("pre");
  if (text === "") body?.remove();
  body?.append(...(item.kind === "edit" ? diffLines(shown) : [inert(shown)]));
  if (hidden > 0) root.append(element("p", "note", `${hidden} more characters are not shown.`));
  if (item.kind === "tool_result" && item.isError) root.classList.add("failed");
  return root;
}

/** As much of a text as a card shows. */
function clip(text: string): string {
  const lines = text.slice(0, CARD_LIMIT).split("\n", CARD_LINES);
  return text.slice(0, lines.join("\n").length);
}

function place(event: PageEvent, root: HTMLElement, before: HTMLElement | undefined): void {
  if (before === undefined) turnOf(event).append(root);
  else before.replaceWith(root);
}

const DIFF_CLASSES: readonly [RegExp, string][] = [
  [/^(---|\+\+\+|@@)/, "place"],
  [/^\+/, "added"],
  [/^-/, "removed"],
];

function diffLines(diff: string): HTMLElement[] {
  const lines = diff.replace(/\n$/, "").split("\n");
  const kind = (line: string) => DIFF_CLASSES.find(([pattern]) => pattern.test(line))?.[1] ?? "";
  return lines.map((line) => element("span", `line ${kind(line)}`, `${inert(line)}\n`));
}

function note(event: PageEvent, text: string, className = "note"): HTMLElement {
  return turnOf(event).appendChild(element("p", className, text));
}

type Drawers = { readonly [T in PageEvent["type"]]?: (event: Extract<PageEvent, { type: T }>) => void };

/** One row an event; what this version does not know is not drawn. */
const DRAWERS: Drawers = {
  "turn.started": (event) => {
    const asked = turnOf(event).appendChild(element("div", "prompt"));
    asked.append(element("span", "unseen", "You: "), inert(event.prompt.slice(0, CARD_LIMIT)));
    const along = event.sent.filter(({ what }) => what !== "prompt");
    if (along.length > 0) note(event, `Sent along: ${along.map(sentNote).join(", ")}`);
  },
  "item.started": (event) => start(event, event.item),
  "item.delta": (event) => items.get(itemKey(event, event.item))?.drawn.push(event.text),
  "item.completed": (event) => complete(event, event.item),
  "item.discarded": (event) => discard(itemKey(event, event.item), event.reason),
  route: (event) => note(event, routeNote(event), `note route${event.class === "ok" ? "" : " passed"}`),
  "approval.requested": (event) => note(event, `Waiting for your approval: ${oneLine(event.title)}`, "note waiting"),
  "approval.resolved": (event) => note(event, `${oneLine(event.hash, 20)} was ${event.state}.`),
  notice: (event) => note(event, inert(event.text), `note ${event.level}`),
  "turn.completed": (event) =>
    note(event, `${stopNote(event.stopReason)} ${usageNote(event.usage)}`.trim(), "note end"),
  failed: showFailure,
};

function show(event: PageEvent): void {
  (DRAWERS[event.type] as ((event: PageEvent) => void) | undefined)?.(event);
}

function discard(key: string, reason: string): void {
  const item = items.get(key);
  items.delete(key);
  item?.root.classList.add("discarded");
  item?.root.append(element("p", "note", `This part is void: ${oneLine(reason)}`));
}

function showFailure(event: PageEvent & { type: "failed" }): void {
  const box = turnOf(event).appendChild(element("div", "failure"));
  box.setAttribute("role", "alert");
  box.append(element("p", "", inert(event.message)));
  if (event.hint !== "") box.append(element("p", "note", event.hint));
  const { action } = event;
  if (action === undefined) return;
  const button = box.appendChild(element("button", "small", ACTIONS[action])) as HTMLButtonElement;
  button.type = "button";
  button.addEventListener("click", () => api.postMessage({ type: "action", action }));
}

const STATUS: Readonly<Record<PageState["status"], string>> = {
  idle: "",
  starting: "Asking…",
  answering: "Answering…",
};

function showState(fresh: PageState): void {
  const was = state.status;
  state = fresh;
  statusLine.textContent = was !== "idle" && fresh.status === "idle" ? "Done." : STATUS[fresh.status];
  stop.hidden = fresh.status === "idle";
  send.disabled = fresh.status !== "idle";
  log.setAttribute("aria-busy", String(fresh.status !== "idle"));
  save();
}

function save(): void {
  api.setState({ session: state.session, draft: prompt.value });
}

function reset(): void {
  turns.clear();
  items.clear();
  due.clear();
  list.replaceChildren();
  isFollowing = true;
}

window.addEventListener("message", ({ data }: MessageEvent<ToPage>) => {
  if (data.type === "reset") reset();
  if (data.type === "reset" || data.type === "state") showState(data.state);
  if (data.type === "reset" || data.type === "events") data.events.forEach(show);
  if (data.type === "focus") prompt.focus();
});

function submit(): void {
  if (send.disabled || prompt.value.trim() === "") return;
  api.postMessage({ type: "ask", prompt: prompt.value });
  prompt.value = "";
  save();
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
prompt.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit();
  }
});
prompt.addEventListener("input", save);
const stopTurn = () => {
  api.postMessage({ type: "stop" });
};
stop.addEventListener("click", stopTurn);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !stop.hidden) stopTurn();
});

const saved = api.getState();
prompt.value = saved?.draft ?? "";
api.postMessage({ type: "ready", session: saved?.session ?? "" });
