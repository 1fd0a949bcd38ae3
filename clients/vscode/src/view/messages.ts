// What the extension and the page of the chat view tell each other.
import type { Event } from "../protocol.gen";

/** A turn that ended in an error, or never began. `action` is a button of `ACTIONS`. */
export interface Failed {
  readonly type: "failed";
  readonly session: string;
  readonly turn: string;
  readonly message: string;
  readonly hint: string;
  readonly action?: Action;
}

export type Action = "addKey" | "showLog";
export type PageEvent = Event | Failed;

export interface PageState {
  readonly status: "idle" | "starting" | "answering";
  readonly showThinking: boolean;
  /** What the page keeps for the next window: which conversation it shows. */
  readonly session: string;
}

export type ToPage =
  | { readonly type: "reset"; readonly events: readonly PageEvent[]; readonly state: PageState }
  | { readonly type: "events"; readonly events: readonly PageEvent[] }
  | { readonly type: "state"; readonly state: PageState }
  | { readonly type: "focus" };

export type FromPage =
  | { readonly type: "ready"; readonly session: string }
  | { readonly type: "ask"; readonly prompt: string }
  | { readonly type: "stop" | "new" | "sessions" | "undo" }
  | { readonly type: "open"; readonly uri: string }
  | { readonly type: "action"; readonly action: Action };
