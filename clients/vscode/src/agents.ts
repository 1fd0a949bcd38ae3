// The agents view and what is done with agents. The server decides everything; this shows and asks.
import type { Approvals } from "./approve";
import { shortHash } from "./approve";
import { describeFailure } from "./ask";
import type { Client } from "./client";
import type { AgentDiagnostic, AgentInfo, AgentRun, PendingApproval, RunInfo } from "./protocol.gen";
import { money } from "./view/cards";
import { inert, oneLine } from "./view/inert";
import type { Choice, Editor, Row } from "./vscodeapi";

const DRAFTS = "**/agent.toml";
const DRAFT_LIMIT = 200;

export interface Listing {
  /** URIs of agent.toml files, with how they are called in the workspace. */
  readonly drafts: readonly { readonly uri: string; readonly path: string }[];
  readonly agents: readonly AgentInfo[];
  readonly runs: readonly RunInfo[];
  readonly questions: readonly PendingApproval[];
}

const ICONS: Readonly<Record<AgentInfo["approval"], string>> = {
  approved: "verified",
  waiting: "question",
  expired: "history",
  revoked: "circle-slash",
  untrusted: "workspace-untrusted",
  damaged: "error",
};

/** The tree; a group without rows is left out. */
export function rowsOf({ drafts, agents, runs, questions }: Listing): Row[] {
  const groups: [string, Row[]][] = [
    ["Questions", questions.map(questionRow)],
    ["Runs", runs.map(runRow)],
    ["Agents", agents.map(agentRow)],
    ["Drafts", drafts.map(draftRow)],
  ];
  return groups
    .filter(([, children]) => children.length > 0)
    .map(([label, children]) => ({ id: `group:${label}`, label, kind: "group", children }));
}

function questionRow({ hash, title, path }: PendingApproval): Row {
  const description = [...path.map((name) => oneLine(name)), shortHash(hash)].join(" › ");
  return { id: `question:${hash}`, label: oneLine(title, 60), description, icon: "question", kind: "question" };
}

function runRow({ run, name, path, hash }: RunInfo): Row {
  const description = `running · ${shortHash(hash)}`;
  return {
    id: `run:${run}`,
    label: [...path, name].map((each) => oneLine(each)).join(" › "),
    description,
    icon: "sync~spin",
    kind: "run",
  };
}

function agentRow({ hash, name, purpose, approval }: AgentInfo): Row {
  return {
    id: `agent:${hash}`,
    label: oneLine(name),
    description: `${approval} · ${shortHash(hash)}`,
    tooltip: `${oneLine(purpose)}\n${hash}`,
    icon: ICONS[approval],
    kind: approval,
    command: { id: "lyma.agents.show", title: "Show" },
  };
}

function draftRow({ uri, path }: { uri: string; path: string }): Row {
  const command = { id: "lyma.agents.openDraft", title: "Open" };
  return { id: `draft:${uri}`, label: path, icon: "edit", kind: "draft", command };
}

/** What a row stands for, of the kind that a command is about. */
export function subject(row: unknown, kind: "agent" | "draft" | "run" | "question"): string | undefined {
  const id = typeof row === "string" ? row : (row as Row | undefined)?.id;
  return id?.startsWith(`${kind}:`) === true ? id.slice(kind.length + 1) : undefined;
}

/** What to tell of a compilation: the first thing that is wrong, and how many more there are. */
export function describeDiagnostics(diagnostics: readonly AgentDiagnostic[]): string {
  const [first, ...more] = diagnostics;
  if (first === undefined) return "It could not be compiled.";
  const where = first.line === undefined ? first.file : `${first.file}:${first.line}`;
  const others = more.length === 0 ? "" : ` (${more.length} more)`;
  return `${oneLine(where)}: ${oneLine(first.message)} ${oneLine(first.hint)}${others}`.trim();
}

/** The result of a run as Markdown; its output is what a model wrote and stays in a fence. */
export function describeRun(run: AgentRun): string {
  const output = run.output === undefined ? "" : JSON.stringify(run.output, undefined, 2);
  const longest = Math.max(2, ...[...output.matchAll(/`+/g)].map(([marks]) => marks.length));
  const fence = "`".repeat(longest + 1);
  const lines = [
    `# Run ${oneLine(run.run)}: ${run.status}`,
    `Agent ${run.hash}`,
    `${run.usage.turns} turns, ${run.usage.tokensIn} tokens in, ${run.usage.tokensOut} out, ${money(run.usage.costMicros)}, ${(run.usage.wallMs / 1000).toFixed(1)} s`,
    ...(run.error === undefined ? [] : [oneLine(run.error, 1000)]),
    ...run.edits.map((edit) => `- changed ${oneLine(edit.path)} (+${edit.added} −${edit.removed})`),
    ...run.left.map((path) => `- not changed: ${oneLine(path)}`),
    ...(output === "" ? [] : [`${fence}json\n${output}\n${fence}`]),
  ];
  return `${lines.join("\n\n")}\n`;
}

/** What a person typed as the input of a run: JSON where it is JSON, else a text. */
export function readInput(typed: string): unknown {
  try {
    return JSON.parse(typed);
  } catch {
    return typed;
  }
}

export class Agents {
  readonly refresh: () => void;

  constructor(
    private readonly client: Pick<Client, "request" | "isRunning">,
    private readonly editor: Editor,
    private readonly approvals: Approvals,
    private readonly revealChat: () => Promise<void>,
  ) {
    this.refresh = editor.tree(
      "lyma.agents",
      () => this.rows(),
      () => this.refresh(),
    );
    const commands: Readonly<Record<string, (row?: unknown) => Promise<void>>> = {
      draft: () => this.draft(),
      compile: (row) => this.compile(row),
      approve: (row) => this.approve(row),
      run: (row) => this.run(row),
      stop: (row) => this.stop(row),
      show: (row) => this.show(row),
      revoke: (row) => this.revoke(row),
      openDraft: async (row) => editor.open(subject(row, "draft") ?? ""),
    };
    for (const [name, command] of Object.entries(commands)) {
      editor.command(`lyma.agents.${name}`, (row) => this.told(command(row)));
    }
    editor.command("lyma.agents.refresh", () => this.refresh());
  }

  /** Nothing is started for a view that is only in sight: without a server there are the drafts. */
  private async rows(): Promise<Row[]> {
    const found = await this.editor.find(DRAFTS, DRAFT_LIMIT);
    const drafts = found.map((uri) => ({ uri, path: this.editor.relative(uri) }));
    if (!this.client.isRunning) return rowsOf({ drafts, agents: [], runs: [], questions: [] });
    const [listed, approvals] = await Promise.all([
      this.client.request("lyma/subagent", { action: "list" }).catch(() => undefined),
      this.client.request("lyma/approve", { action: "list" }).catch(() => undefined),
    ]);
    const { agents, runs } = listed ?? { agents: [], runs: [] };
    return rowsOf({ drafts, agents, runs, questions: approvals?.pending ?? this.approvals.waiting });
  }

  private async draft(): Promise<void> {
    const task = await this.editor.input("Draft Agent", "What should the agent do? Empty: start from a template.");
    if (task === undefined) return;
    const template = task === "" ? await this.editor.input("Draft Agent", "The name of the new agent") : undefined;
    if (task === "" && (template === undefined || template === "")) return;
    const params = task === "" ? { template: template ?? "" } : { task };
    const made = await this.editor.progress("Lyma drafts an agent", () =>
      this.client.request("lyma/subagent", { action: "draft", ...params }),
    );
    if (made.uri !== undefined) await this.editor.open(made.uri);
    if (made.notes.length > 0) void this.editor.info(made.notes.map((line) => oneLine(line)).join(" "));
  }

  private async compile(row: unknown): Promise<void> {
    const uri = subject(row, "draft") ?? this.activeDraft() ?? (await this.pickDraft());
    if (uri === undefined) return;
    const made = await this.client.request("lyma/subagent", { action: "compile", uri });
    const { hash } = made;
    if (hash === undefined) {
      void this.editor.fail(describeDiagnostics(made.diagnostics), { label: "Open", run: () => this.editor.open(uri) });
      return;
    }
    const isApproved = made.approval === "approved";
    void this.editor.info(
      `Compiled: ${shortHash(hash)}, ${made.approval ?? "waiting"}.`,
      isApproved
        ? { label: "Run", run: () => this.told(this.run(`agent:${hash}`)) }
        : { label: "Approve…", run: () => this.told(this.approve(`agent:${hash}`)) },
    );
  }

  private async approve(row: unknown): Promise<void> {
    const named = subject(row, "question") ?? subject(row, "agent");
    if (this.approvals.askAgain(named)) return;
    const hash = named ?? (await this.pickAgent("Approve", (agent) => agent.approval !== "approved"));
    if (hash === undefined) return;
    const { state } = await this.client.request("lyma/approve", { action: "approve", hash });
    void this.editor.info(`${shortHash(hash)} is ${state ?? "as it was"}.`);
  }

  private async run(row: unknown): Promise<void> {
    const hash = subject(row, "agent") ?? (await this.pickAgent("Run", () => true));
    if (hash === undefined) return;
    const typed = await this.editor.input("Run Agent", "Its input: text, or JSON as its schema says");
    if (typed === undefined) return;
    await this.revealChat();
    const running = this.client.request("lyma/subagent", { action: "run", hash, input: readInput(typed) });
    this.refresh();
    const { result } = await running;
    if (result !== undefined) await this.editor.show(describeRun(result), "markdown");
  }

  private async stop(row: unknown): Promise<void> {
    const run = subject(row, "run") ?? (await this.pickRun());
    if (run !== undefined) await this.client.request("lyma/subagent", { action: "stop", run });
  }

  private async show(row: unknown): Promise<void> {
    const hash = subject(row, "question") ?? subject(row, "agent") ?? (await this.pickAgent("Show", () => true));
    if (hash === undefined) return;
    const { agent } = await this.client.request("lyma/approve", { action: "show", hash });
    if (agent !== undefined)
      await this.approvals.show(shortHash(hash), `${oneLine(agent.title)}\n${hash}\n\n${inert(agent.text)}\n`);
  }

  private async revoke(row: unknown): Promise<void> {
    const hash = subject(row, "agent") ?? (await this.pickAgent("Revoke", (agent) => agent.approval === "approved"));
    if (hash === undefined) return;
    const detail = `${hash}\n\nAfter this it can only be approved in a terminal.`;
    if ((await this.editor.confirm("Revoke the approval?", detail, "Revoke")) !== "Revoke") return;
    await this.client.request("lyma/approve", { action: "revoke", hash });
  }

  private activeDraft(): string | undefined {
    const uri = this.editor.active()?.uri;
    return uri?.endsWith("/agent.toml") === true ? uri : undefined;
  }

  private async pickDraft(): Promise<string | undefined> {
    const found = await this.editor.find(DRAFTS, DRAFT_LIMIT);
    const choices = found.map((uri) => ({ label: this.editor.relative(uri), value: uri }));
    return this.pick("Compile which agent?", choices, "There is no agent.toml here; “Lyma: Draft Agent” makes one.");
  }

  private async pickAgent(verb: string, fits: (agent: AgentInfo) => boolean): Promise<string | undefined> {
    const { agents } = await this.client.request("lyma/subagent", { action: "list" });
    const choices = agents
      .filter(fits)
      .map(({ hash, name, purpose, approval }) => ({
        label: oneLine(name),
        description: `${approval} · ${shortHash(hash)}`,
        detail: oneLine(purpose),
        value: hash,
      }));
    return this.pick(`${verb} which agent?`, choices, "There is no such agent; compile one first.");
  }

  private async pickRun(): Promise<string | undefined> {
    const { runs } = await this.client.request("lyma/subagent", { action: "list" });
    const choices = runs.map(({ run, name }) => ({ label: oneLine(name), description: run, value: run }));
    return this.pick("Stop which run?", choices, "No agent runs.");
  }

  private async pick(title: string, choices: Choice<string>[], otherwise: string): Promise<string | undefined> {
    if (choices.length > 0) return this.editor.pick(title, choices);
    void this.editor.info(otherwise);
    return undefined;
  }

  /** Do it, say what went wrong, and show the tree as it is then. */
  private async told(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (problem) {
      const { message, hint } = describeFailure(problem);
      void this.editor.fail(`${message} ${hint}`.trim());
    } finally {
      this.refresh();
    }
  }
}
