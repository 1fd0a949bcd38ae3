// What the chat view shows: kept within bounds, so that a page that comes later sees it too, and sent in batches.
import type { ItemDelta } from "./protocol.gen";
import type { PageEvent } from "./view/messages";

/** How often a page is told of what came, in milliseconds; what comes after a silence is told at once. */
export const BATCH_MS = 40;
/** What is kept: turns, and characters of all their texts. */
export const TURN_LIMIT = 50;
export const CHARACTER_LIMIT = 8_000_000;

export interface FeedPort {
  send(events: readonly PageEvent[]): void;
  later(ms: number, callback: () => void): void;
}

interface KeptTurn {
  readonly key: string;
  events: PageEvent[];
  size: number;
}

export class Feed {
  private turns: KeptTurn[] = [];
  private waiting: PageEvent[] = [];
  private isPaused = false;

  constructor(private readonly port: FeedPort) {}

  add(event: PageEvent): void {
    this.keep(event);
    appendEvent(this.waiting, event);
    if (!this.isPaused) this.flush();
  }

  /** Everything that is kept, with nothing left to send. */
  all(): PageEvent[] {
    this.waiting = [];
    return this.turns.flatMap((turn) => turn.events);
  }

  clear(): void {
    this.turns = [];
    this.waiting = [];
  }

  private flush(): void {
    if (this.waiting.length === 0) return;
    const events = this.waiting;
    this.waiting = [];
    this.isPaused = true;
    this.port.send(events);
    this.port.later(BATCH_MS, () => {
      this.isPaused = false;
      this.flush();
    });
  }

  private keep(event: PageEvent): void {
    const key = `${event.session} ${event.turn}`;
    let turn = this.turns.find((each) => each.key === key);
    if (turn === undefined) {
      turn = { key, events: [], size: 0 };
      this.turns.push(turn);
    }
    if (event.type === "item.completed") turn.events = without(turn.events, event.item.id);
    appendEvent(turn.events, event);
    turn.size += sizeOf(event);
    let size = this.turns.reduce((sum, each) => sum + each.size, 0);
    while (this.turns.length > 1 && (this.turns.length > TURN_LIMIT || size > CHARACTER_LIMIT)) {
      size -= this.turns.shift()?.size ?? 0;
    }
  }
}

/** Add an event; a delta that follows one of the same item joins it. */
export function appendEvent(events: PageEvent[], event: PageEvent): void {
  const last = events.at(-1);
  if (event.type === "item.delta" && last?.type === "item.delta" && isSame(last, event)) {
    events[events.length - 1] = { ...last, text: last.text + event.text };
  } else {
    events.push(event);
  }
}

type Delta = ItemDelta & { session: string; turn: string };

function isSame(one: Delta, other: Delta): boolean {
  return one.item === other.item && one.turn === other.turn && one.session === other.session;
}

/** The events without what the completed item makes void. */
function without(events: readonly PageEvent[], item: string): PageEvent[] {
  return events.filter(
    (event) =>
      !(event.type === "item.delta" && event.item === item) &&
      !(event.type === "item.started" && event.item.id === item),
  );
}

function sizeOf(event: PageEvent): number {
  if (event.type === "item.delta") return event.text.length;
  if (event.type !== "item.completed") return 100;
  const { item } = event;
  return 100 + ("text" in item ? item.text.length : "diff" in item ? item.diff.length : 100);
}
