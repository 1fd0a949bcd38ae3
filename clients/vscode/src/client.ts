// The server's life: started when it is first needed, started again after a crash, stopped with the editor.
import type { Requests, RequestApprovalParams, RequestApprovalResult } from "./protocol.gen";
import { PROTOCOL_VERSION } from "./protocol.gen";
import type { Cancellation } from "./vscodeapi";

export interface ServerInfo {
  readonly name: string;
  readonly version: string;
  readonly protocol: number;
}

export type Method = Exclude<keyof Requests, "lyma/requestApproval">;

export interface Connection {
  start(): Promise<ServerInfo>;
  stop(): Promise<void>;
  request<M extends Method>(
    method: M,
    params: Requests[M]["params"],
    stop?: Cancellation,
  ): Promise<Requests[M]["result"]>;
}

export type Approver = (params: RequestApprovalParams, stop: Cancellation) => Promise<RequestApprovalResult | null>;

/** Why there is no server. `remedy` tells the buttons that help. */
export class NoServer extends Error {
  constructor(
    message: string,
    readonly remedy: "install" | "setting" | "log",
  ) {
    super(message);
  }
}

export interface Supervision {
  /** Make a connection that is not started yet. Throws NoServer. */
  connect(closed: () => void): Promise<Connection>;
  tell(state: ClientState): void;
  /** Call back after so many milliseconds. */
  later(ms: number, callback: () => void): void;
  now(): number;
}

export type ClientState =
  | { readonly is: "stopped" | "starting" }
  | { readonly is: "running"; readonly info: ServerInfo; readonly again: boolean }
  | { readonly is: "crashed"; readonly retryMs: number | undefined };

/** Delays before the server is started again, in milliseconds: a crash that follows them all within WINDOW_MS is the last. */
export const BACKOFF_MS = [500, 1000, 2000, 4000, 8000] as const;
export const WINDOW_MS = 180_000;

/** How long to wait after a crash, given when the earlier ones were; undefined: give up. */
export function delayAfter(crashes: readonly number[], now: number): number | undefined {
  return BACKOFF_MS[crashes.filter((moment) => now - moment < WINDOW_MS).length];
}

export class Client {
  private running: Promise<Connection> | undefined;
  private crashes: number[] = [];
  private leaving = false;
  private generation = 0;

  constructor(private readonly supervision: Supervision) {}

  /** Start the server if it does not run. Throws NoServer. */
  async ready(): Promise<Connection> {
    if (this.leaving) throw new NoServer("The editor is closing.", "log");
    this.running ??= this.start();
    return this.running;
  }

  get isRunning(): boolean {
    return this.running !== undefined;
  }

  async request<M extends Method>(
    method: M,
    params: Requests[M]["params"],
    stop?: Cancellation,
  ): Promise<Requests[M]["result"]> {
    const connection = await this.ready();
    return connection.request(method, params, stop);
  }

  /** Stop the server and wait until it is gone. */
  async stop(): Promise<void> {
    const running = this.running;
    this.running = undefined;
    this.generation += 1;
    this.supervision.tell({ is: "stopped" });
    const connection = await running?.catch(() => undefined);
    await connection?.stop().catch(() => undefined);
  }

  /** The same for good: the editor closes. */
  async leave(): Promise<void> {
    this.leaving = true;
    await this.stop();
  }

  async restart(): Promise<void> {
    await this.stop();
    this.crashes = [];
    await this.ready();
  }

  private async start(): Promise<Connection> {
    const generation = ++this.generation;
    let started = false;
    this.supervision.tell({ is: "starting" });
    try {
      const connection = await this.supervision.connect(() => {
        if (started) this.closed(generation);
      });
      const info = await connection.start();
      await checkVersion(connection, info);
      started = true;
      if (generation === this.generation) {
        this.supervision.tell({ is: "running", info, again: this.crashes.length > 0 });
      }
      return connection;
    } catch (problem) {
      if (generation === this.generation) {
        this.running = undefined;
        this.supervision.tell({ is: "stopped" });
      }
      throw problem instanceof NoServer ? problem : new NoServer(couldNotStart(problem), "log");
    }
  }

  /** The process has ended and nobody asked it to. */
  private closed(generation: number): void {
    if (generation !== this.generation || this.leaving) return;
    const now = this.supervision.now();
    const retryMs = delayAfter(this.crashes, now);
    this.crashes = [...this.crashes.filter((moment) => now - moment < WINDOW_MS), now];
    this.running = undefined;
    this.supervision.tell({ is: "crashed", retryMs });
    if (retryMs === undefined) return;
    this.supervision.later(retryMs, () => {
      if (generation === this.generation) this.ready().catch(() => undefined);
    });
  }
}

async function checkVersion(connection: Connection, info: ServerInfo): Promise<void> {
  if (info.protocol === PROTOCOL_VERSION) return;
  await connection.stop().catch(() => undefined);
  const found =
    info.name === "lyma" ? `Lyma's server ${info.version} speaks` : "What was started as Lyma's server speaks";
  throw new NoServer(`${found} another protocol than this extension (version ${PROTOCOL_VERSION}).`, "install");
}

function couldNotStart(problem: unknown): string {
  const reason = problem instanceof Error ? problem.message : String(problem);
  return `Lyma's server could not be started: ${reason.split("\n")[0] ?? ""}`;
}
