// Lyma in VS Code: everything is put together here. Nothing starts before it is asked for, nor in a workspace without trust.
import { Agents } from "./agents";
import { Approvals } from "./approve";
import { Chat, createParticipant, describeFailure } from "./ask";
import { Client, type ClientState, NoServer } from "./client";
import { connect } from "./connection";
import { Feed } from "./feed";
import { pageHtml } from "./html";
import type { Event } from "./protocol.gen";
import { ServerSource } from "./server";
import { registerSessions, undoLastTurn } from "./sessions";
import { describeModels, describeStatus, StatusLine } from "./status";
import { Turns } from "./turns";
import type { FromPage, ToPage } from "./view/messages";
import { createEditor, type Editor } from "./vscodeapi";

let leave: () => Promise<void> = () => Promise.resolve();

export function activate(context: Parameters<typeof createEditor>[0]): void {
  const editor = createEditor(context);
  const house = build(editor);
  leave = () => house.client.leave();
  registerCommands(editor, house);
}

export function deactivate(): Promise<void> {
  return leave();
}

type House = ReturnType<typeof build>;

function build(editor: Editor) {
  const status = new StatusLine();
  const showStatus = editor.statusItem("Lyma", "lyma.status.show");
  const refreshStatus = () => {
    const { text, tooltip } = status.line();
    showStatus(text, tooltip);
  };
  const source = new ServerSource(editor, () => client.restart());
  const turns = new Turns((event) => feed.add(event));
  const hear = (event: Event) => {
    turns.hear(event);
    status.hear(event);
    if (event.type !== "item.delta") refreshStatus();
  };
  const tell = (state: ClientState) => {
    status.tell(state);
    refreshStatus();
    void editor.run("setContext", "lyma.running", state.is === "running");
    tellOfServer(editor, state);
    if (state.is === "running") agents.refresh();
  };
  const client: Client = new Client({
    connect: async (closed) =>
      connect(await source.find(), editor.log, {
        event: hear,
        approver: (params, stop) => approvals.answer(params, stop),
        closed,
      }),
    tell,
    later: setTimer,
    now: () => Date.now(),
  });
  const page = editor.page("lyma.chat", { html: pageHtml, hear: (message) => void chat.hearPage(message as FromPage) });
  const view = { send: (message: ToPage) => page.send(message), reveal: () => page.reveal() };
  const feed = new Feed({ send: (events) => page.send({ type: "events", events } satisfies ToPage), later: setTimer });
  const approvals = new Approvals(editor, () => agents.refresh());
  const agents: Agents = new Agents(client, editor, approvals, view.reveal);
  const chat: Chat = new Chat({
    client,
    turns,
    feed,
    editor,
    page: view,
    act: (action) => editor.run(ACTIONS[action]),
    noServer: (problem) => source.offer(problem),
  });
  editor.participant("lyma.participant", createParticipant(client, turns, editor));
  editor.onSetting(() => chat.tell());
  refreshStatus();
  return { client, source, chat, view };
}

const ACTIONS = {
  addKey: "lyma.keys.add",
  showLog: "lyma.log.show",
  new: "lyma.chat.new",
  sessions: "lyma.chat.sessions",
  undo: "lyma.chat.undo",
} as const;

function registerCommands(editor: Editor, { client, source, chat, view }: House): void {
  const ask = async (title: string, question: string) => {
    const prompt = await editor.input(title, question);
    if (prompt === undefined || prompt.trim() === "") return undefined;
    await view.reveal();
    return chat.ask(prompt);
  };
  const commands: Readonly<Record<string, () => unknown>> = {
    "chat.ask": () => ask("Lyma: Ask", "What would you like to know or have done?"),
    "chat.askSelection": () => ask("Lyma: Ask About Selection", "What about the selected lines?"),
    "chat.stop": () => chat.stop(),
    "chat.new": async () => {
      await chat.startOver();
      view.send({ type: "focus" });
    },
    "chat.undo": () => undoLastTurn(editor, client, chat),
    "status.show": async () => editor.show(describeStatus(await client.request("lyma/status", {})), "markdown"),
    "status.models": async () => editor.show(describeModels(await client.request("lyma/models", {})), "markdown"),
    "log.show": () => editor.log.show(),
    "keys.add": async () => {
      const status = await editor.terminal("Lyma: Add Key", await source.terminalProgram(), ["setup"]);
      if (status === 0) await useNewKey(editor, client, chat);
    },
    "server.install": () => source.install(),
    "server.restart": () => client.restart(),
  };
  for (const [name, command] of Object.entries(commands)) {
    editor.command(`lyma.${name}`, () => told(editor, source, command));
  }
  registerSessions(editor, client, chat, view, (work) => told(editor, source, work));
}

/** A server reads its keys when it starts, so one that runs is started again, unless it is in the middle of an answer. */
async function useNewKey(editor: Editor, client: House["client"], chat: Chat): Promise<unknown> {
  if (chat.isBusy) return editor.info("The key is stored; “Lyma: Restart Server” makes the server see it.");
  if (client.isRunning) await client.restart();
  return editor.info("The key is stored; Lyma asks with it from now on.");
}

/** Do it and say what went wrong. */
async function told(editor: Editor, source: ServerSource, command: () => unknown): Promise<unknown> {
  try {
    return await command();
  } catch (problem) {
    if (problem instanceof NoServer) void source.offer(problem);
    else void editor.fail(describeFailure(problem).message);
    return undefined;
  }
}

function tellOfServer(editor: Editor, state: ClientState): void {
  if (state.is === "running" && state.again) editor.log.info("Lyma's server runs again.");
  if (state.is !== "crashed") return;
  const showLog = { label: "Show Log", run: () => editor.log.show() };
  if (state.retryMs === undefined) {
    const restart = { label: "Restart", run: () => editor.run("lyma.server.restart") };
    void editor.fail("Lyma's server stopped again and again, so it is left alone.", restart, showLog);
  } else {
    void editor.warn(`Lyma's server stopped; it is started again in ${state.retryMs / 1000} s.`, showLog);
  }
}

function setTimer(ms: number, callback: () => void): void {
  setTimeout(callback, ms);
}
