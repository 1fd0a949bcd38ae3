// One process of the server, and the messages to and from it.
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  TransportKind,
} from "vscode-languageclient/node";
import type { Approver, Connection, ServerInfo } from "./client";
import { type Event, type LymaCapabilities, PROTOCOL_VERSION, type RequestApprovalParams } from "./protocol.gen";
import type { Cancellation, Editor } from "./vscodeapi";

/** How long the server may take to stop what runs (it promises 2 s) before it is ended. */
const STOP_MS = 2500;

export interface Hooks {
  readonly event: (event: Event) => void;
  readonly approver: Approver;
  readonly closed: () => void;
}

export function connect(program: string, log: Editor["log"], hooks: Hooks): Connection {
  const options: LanguageClientOptions = {
    documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
    outputChannel: log,
    traceOutputChannel: silent(log),
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        hooks.closed();
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    },
  };
  const client = new LanguageClient("lyma", "Lyma", { command: program, transport: TransportKind.stdio }, options);
  client.registerFeature({
    fillClientCapabilities: (capabilities) => {
      const lyma: LymaCapabilities = { protocolVersion: PROTOCOL_VERSION, events: {}, approvals: {} };
      capabilities.experimental = { lyma };
    },
    initialize: () => undefined,
    getState: () => ({ kind: "static" }),
    clear: () => undefined,
  });
  client.onNotification("lyma/event", hooks.event);
  client.onRequest("lyma/requestApproval", (params: RequestApprovalParams, stop: Cancellation) =>
    hooks.approver(params, stop),
  );
  return {
    async start() {
      await client.start();
      return describe(client.initializeResult);
    },
    async stop() {
      await client.stop(STOP_MS);
    },
    request: (method, params, stop) =>
      stop === undefined ? client.sendRequest(method, params) : client.sendRequest(method, params, stop as never),
  };
}

function describe(result: LanguageClient["initializeResult"]): ServerInfo {
  const experimental = result?.capabilities.experimental as { lyma?: Partial<LymaCapabilities> } | undefined;
  return {
    name: result?.serverInfo?.name ?? "",
    version: result?.serverInfo?.version ?? "",
    protocol: experimental?.lyma?.protocolVersion ?? 0,
  };
}

/** Messages carry what must not be in a log (a nonce, a prompt), so none is traced at any level. */
function silent(log: Editor["log"]): Editor["log"] {
  const off = 0;
  return new Proxy(log, {
    get(target, name) {
      if (name === "logLevel") return off;
      if (name === "onDidChangeLogLevel") return () => ({ dispose: () => undefined });
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? () => undefined : value;
    },
  });
}
