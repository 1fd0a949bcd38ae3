// Conversations: picked, copied, removed, and what a turn changed undone.
import type { Chat } from "./ask";
import type { Client } from "./client";
import type { SessionInfo, UndoneFile } from "./protocol.gen";
import { oneLine } from "./view/inert";
import type { Choice, Editor } from "./vscodeapi";

type Requester = Pick<Client, "request">;
type Act = "open" | "copy" | "delete";

/** The conversations as choices, those of these folders first. */
export function sessionChoices(sessions: readonly SessionInfo[], folders: readonly string[]): Choice<SessionInfo>[] {
  const isHere = ({ root }: SessionInfo) => root !== null && folders.some((folder) => root.endsWith(folder));
  return [...sessions.filter(isHere), ...sessions.filter((each) => !isHere(each))].map((session) => ({
    label: oneLine(session.title, 80) || session.session,
    description: `${session.updated.slice(0, 16).replace("T", " ")} · ${session.turns} ${session.turns === 1 ? "turn" : "turns"}`,
    ...(session.root === null ? {} : { detail: oneLine(session.root) }),
    value: session,
  }));
}

/** What became of the files of a turn. */
export function describeUndo(files: readonly UndoneFile[]): string {
  const done = files.filter(({ outcome }) => outcome === "restored" || outcome === "removed").length;
  const kept = files.filter(({ outcome }) => outcome === "kept");
  const first = kept[0] === undefined ? "" : ` Kept ${kept.length}: ${oneLine(kept[0].reason ?? kept[0].uri)}`;
  return `${done} ${done === 1 ? "file is" : "files are"} as before the turn.${first}`;
}

export async function undoLastTurn(editor: Editor, client: Requester, chat: Pick<Chat, "session">): Promise<unknown> {
  if (chat.session === undefined) return editor.info("Nothing has been asked yet, so there is nothing to undo.");
  const { files } = await client.request("lyma/sessions", { action: "undo", session: chat.session });
  return editor.info(describeUndo(files));
}

export function registerSessions(
  editor: Editor,
  client: Requester,
  chat: Chat,
  view: { reveal(): Promise<void> },
  told: (work: () => Promise<unknown>) => Promise<unknown>,
): void {
  const acts: Readonly<Record<Act, (session: string) => Promise<unknown>>> = {
    open: (session) => chat.load(session),
    copy: async (session) => {
      const { sessions } = await client.request("lyma/sessions", { action: "fork", session });
      if (sessions[0] !== undefined) await chat.load(sessions[0].session);
    },
    delete: async (session) => {
      await client.request("lyma/sessions", { action: "delete", session });
      if (chat.session === session) await chat.startOver();
    },
  };
  const choose = async () => {
    const { sessions } = await client.request("lyma/sessions", { action: "list" });
    if (sessions.length === 0) return editor.info("There are no conversations yet.");
    const chosen = await editor.pick("Which conversation?", sessionChoices(sessions, editor.folders()));
    if (chosen === undefined) return;
    const act = await editor.pick<Act>(oneLine(chosen.title, 80), [
      { label: "Open", description: "show it and go on with it", value: "open" },
      { label: "Copy", description: "go on with a copy of it", value: "copy" },
      { label: "Delete", description: "remove it for good", value: "delete" },
    ]);
    if (act === undefined) return;
    await view.reveal();
    await acts[act](chosen.session);
  };
  editor.command("lyma.chat.sessions", () => told(choose));
}
