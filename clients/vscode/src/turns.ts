// Who hears the events of a turn: whoever asked for it. The session of a new conversation is known by its first event.
import type { Event } from "./protocol.gen";

export type Listener = (event: Event) => void;

interface Waiting {
  readonly session: string | undefined;
  readonly listener: Listener;
}

export class Turns {
  private waiting: Waiting[] = [];
  private readonly owners = new Map<string, Listener>();
  private readonly replays = new Map<string, Listener>();

  /** `others` hears of turns that nobody here asked for, such as a run that a code lens began. */
  constructor(private readonly others: Listener) {}

  /** The next turn of `session` (undefined: of a new one) is heard by `listener`, until the returned function is called. */
  expect(session: string | undefined, listener: Listener): () => void {
    const entry: Waiting = { session, listener };
    this.waiting.push(entry);
    return () => {
      this.waiting = this.waiting.filter((each) => each !== entry);
      for (const [key, owner] of this.owners) if (owner === listener) this.owners.delete(key);
    };
  }

  /** The replayed events of `session` are heard by `listener`, until the returned function is called. */
  expectReplay(session: string, listener: Listener): () => void {
    this.replays.set(session, listener);
    return () => this.replays.delete(session);
  }

  hear(event: Event): void {
    if (event.replay === true) {
      this.replays.get(event.session)?.(event);
      return;
    }
    const key = `${event.session} ${event.turn}`;
    if (event.type === "turn.started") this.assign(key, event.session);
    (this.owners.get(key) ?? this.others)(event);
  }

  private assign(key: string, session: string): void {
    const mine = this.waiting.find((each) => each.session === session);
    const chosen = mine ?? this.waiting.find((each) => each.session === undefined);
    if (chosen === undefined) return;
    this.waiting = this.waiting.filter((each) => each !== chosen);
    this.owners.set(key, chosen.listener);
  }
}
