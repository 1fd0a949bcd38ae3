// Asking: what goes along, the turn under way, stopping it, and what to say where it fails.
import { NoServer } from "./client";
import type { Client } from "./client";
import type { Feed } from "./feed";
import type { AskContext, AskParams, AskResult, Diagnostic, ErrorKind, Event } from "./protocol.gen";
import { SETTINGS } from "./settings";
import type { Turns } from "./turns";
import type { Action, Failed, FromPage, PageState, ToPage } from "./view/messages";
import { inert, oneLine } from "./view/inert";
import type { Canceller, Editor, Participant } from "./vscodeapi";

/** The most diagnostics that travel with a prompt. */
export const DIAGNOSTIC_LIMIT = 30;
const SESSION = "session";

export type Screen = Pick<Editor, "active" | "visible" | "diagnostics">;

/** What the person has before their eyes: the selection, what is open, what other servers say of it. */
export function collectContext(screen: Screen): AskContext {
  const active = screen.active();
  const diagnostics = active === undefined ? [] : near(screen.diagnostics(active.uri), active.selections?.[0]);
  return { active: active ?? null, documents: screen.visible(), diagnostics };
}

/** Those in the selection; without one, or with none in it, the first. */
function near(diagnostics: readonly Diagnostic[], selection: Diagnostic["range"] | undefined): Diagnostic[] {
  const touches = ({ range }: Diagnostic) =>
    selection !== undefined && range.start.line <= selection.end.line && range.end.line >= selection.start.line;
  const inside = diagnostics.filter(touches);
  return (inside.length > 0 ? inside : diagnostics).slice(0, DIAGNOSTIC_LIMIT);
}

const DESKTOP =
  "An editor that was started from a desktop does not see the variables of a shell's profile. " +
  "“Lyma: Add Key” stores a key where every editor finds it.";

const HINTS: Partial<Record<ErrorKind, { readonly hint: string; readonly action: Action }>> = {
  config_error: { hint: DESKTOP, action: "addKey" },
  provider_error: { hint: "“Lyma: Show Status” tells how each provider fares.", action: "showLog" },
};

export interface Failure {
  readonly message: string;
  readonly kind: string;
  readonly hint: string;
  readonly action?: Action;
}

/** An error of a request, for a person. */
export function describeFailure(problem: unknown): Failure {
  const { message, data } = problem as { message?: unknown; data?: { kind?: unknown } };
  const kind = typeof data?.kind === "string" ? data.kind : "";
  const known = HINTS[kind as ErrorKind] ?? {
    hint: "",
    ...(problem instanceof NoServer ? { action: "showLog" as const } : {}),
  };
  return { message: oneLine(typeof message === "string" ? message : String(problem), 1000), kind, ...known };
}

export interface Surroundings {
  readonly client: Pick<Client, "request">;
  readonly turns: Turns;
  readonly feed: Feed;
  readonly editor: Screen & Pick<Editor, "canceller" | "recall" | "remember" | "open" | "run" | "log" | "setting">;
  readonly page: { send(message: ToPage): void };
  /** Run a button of the page. */
  readonly act: (action: Action | "new" | "sessions" | "undo") => unknown;
  /** Tell of a server that is missing. Resolves to true where the button of the message has brought one. */
  readonly noServer: (problem: NoServer) => Promise<unknown>;
}

export class Chat {
  /** The conversation that goes on with the next ask. */
  session: string | undefined;
  private running: Canceller | undefined;
  private status: PageState["status"] = "idle";
  private failures = 0;
  private asked = 0;
  /** Counts what has been shown: a turn of a conversation that is no longer shown is not heard. */
  private shown = 0;

  constructor(private readonly around: Surroundings) {
    const session = around.editor.recall(SESSION, "workspace");
    this.session = typeof session === "string" ? session : undefined;
  }

  get isBusy(): boolean {
    return this.running !== undefined;
  }

  /** Ask and show the answer. An ask while another is under way is refused. */
  async ask(prompt: string): Promise<AskResult | undefined> {
    if (prompt.trim() === "") return undefined;
    const { editor, client, turns, feed } = this.around;
    if (this.running !== undefined) {
      this.fail({ message: "Lyma is still answering; stop it first, or wait.", kind: "", hint: "" });
      return undefined;
    }
    const params: AskParams = { prompt, session: this.session ?? null, context: collectContext(editor) };
    const { shown } = this;
    const release = turns.expect(this.session, (event) => {
      if (shown !== this.shown) return;
      this.hear(event);
      feed.add(event);
    });
    const canceller = editor.canceller();
    this.begin(canceller);
    try {
      return await client.request("lyma/ask", params, canceller.token);
    } catch (problem) {
      if (shown === this.shown) await this.explain(problem, () => this.ask(prompt));
      return undefined;
    } finally {
      release();
      this.end(canceller);
    }
  }

  stop(): void {
    this.running?.cancel();
  }

  /** Begin a new conversation with the next ask. */
  async startOver(): Promise<void> {
    this.leave();
    await this.goOn(undefined);
    this.reset();
  }

  /** Show a conversation from its beginning and go on with it. */
  async load(session: string): Promise<void> {
    const { client, turns, feed } = this.around;
    this.leave();
    const release = turns.expectReplay(session, (event) => feed.add(event));
    try {
      await client.request("lyma/sessions", { action: "load", session });
      await this.goOn(session);
    } catch (problem) {
      await this.explain(problem, () => this.load(session));
    } finally {
      release();
      this.reset();
    }
  }

  /** The page says something. */
  async hearPage(message: FromPage): Promise<void> {
    switch (message.type) {
      case "ready":
        return this.welcome(message.session);
      case "ask":
        await this.ask(message.prompt);
        return;
      case "stop":
        this.stop();
        return;
      case "open":
        if (message.uri.startsWith("file:")) await this.around.editor.open(message.uri);
        return;
      case "action":
        await this.around.act(message.action);
        return;
      default:
        await this.around.act(message.type);
    }
  }

  /** Tell the page how things are. */
  tell(): void {
    this.around.page.send({ type: "state", state: this.state() });
  }

  /** Say in the view what went wrong. */
  fail(failure: Failure): void {
    this.failures += 1;
    const place = { session: this.session ?? "", turn: `failed ${this.failures}` };
    const { message, hint, action } = failure;
    const failed: Failed = { type: "failed", ...place, message, hint, ...(action === undefined ? {} : { action }) };
    this.around.feed.add(failed);
  }

  /** A page has come: a new window shows the conversation that the last one showed. */
  private async welcome(shown: string): Promise<void> {
    const { feed } = this.around;
    if (feed.all().length === 0 && this.session !== undefined && shown === this.session && !this.isBusy) {
      await this.load(this.session);
      return;
    }
    this.reset();
  }

  private leave(): void {
    this.stop();
    this.running = undefined;
    this.shown += 1;
    this.idle();
    this.around.feed.clear();
  }

  private reset(): void {
    this.around.page.send({ type: "reset", events: this.around.feed.all(), state: this.state() });
  }

  private state(): PageState {
    const showThinking = this.around.editor.setting(SETTINGS.showThinking) === true;
    return { status: this.status, showThinking, session: this.session ?? "" };
  }

  private hear(event: Event): void {
    if (event.type === "turn.started") {
      this.status = "answering";
      void this.goOn(event.session);
      this.tell();
    }
  }

  private begin(canceller: Canceller): void {
    this.running = canceller;
    this.asked += 1;
    this.status = "starting";
    void this.around.editor.run("setContext", "lyma.busy", true);
    this.tell();
  }

  private end(canceller: Canceller): void {
    canceller.dispose();
    if (this.running !== canceller) return;
    this.running = undefined;
    this.idle();
    this.tell();
  }

  private idle(): void {
    this.status = "idle";
    void this.around.editor.run("setContext", "lyma.busy", false);
  }

  /** Say what went wrong; `again` is done where only a server was missing and one comes. */
  private async explain(problem: unknown, again: () => unknown): Promise<void> {
    const failure = describeFailure(problem);
    this.around.editor.log.error(failure.message);
    if (failure.kind === "session_not_found") await this.goOn(undefined);
    this.fail(failure);
    if (problem instanceof NoServer) void this.offerServer(problem, again);
  }

  /** What was wanted in vain is done when a server comes, unless the person has gone on meanwhile. */
  private async offerServer(problem: NoServer, again: () => unknown): Promise<void> {
    const { asked, shown } = this;
    const came = await this.around.noServer(problem);
    if (came === true && asked === this.asked && shown === this.shown) await again();
  }

  private async goOn(session: string | undefined): Promise<void> {
    this.session = session;
    await this.around.editor.remember(SESSION, session, "workspace");
  }
}

/** `@lyma` in the native chat: the same ask, in a conversation of its own. */
export function createParticipant(client: Pick<Client, "request">, turns: Turns, screen: Screen): Participant {
  return {
    async ask(prompt, known, reply, stop) {
      let session = known;
      const texts = new Set<string>();
      const release = turns.expect(session, (event) => {
        session = event.session;
        const { kind, id } = event.type === "item.started" ? event.item : { kind: "", id: "" };
        if (kind === "text") texts.add(id);
        if (event.type === "item.delta" && texts.has(event.item)) reply.markdown(inert(event.text));
        if (event.type === "item.discarded" && texts.has(event.item))
          reply.markdown("\n\n*The answer broke off; it is asked again.*\n\n");
        if (event.type === "item.started" && event.item.kind === "tool_call") reply.progress(oneLine(event.item.name));
      });
      try {
        await client.request("lyma/ask", { prompt, session: session ?? null, context: collectContext(screen) }, stop);
      } catch (problem) {
        const { message, hint, kind } = describeFailure(problem);
        if (kind === "session_not_found") session = undefined;
        reply.markdown(`${message} ${hint}`);
      } finally {
        release();
      }
      return session;
    },
  };
}
