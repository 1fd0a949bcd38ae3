// Approvals: the agent as a read-only document, then a dialog that names the hash. Only its button says yes.
import type { RequestApprovalParams, RequestApprovalResult } from "./protocol.gen";
import { inert, oneLine } from "./view/inert";
import type { Cancellation, Editor } from "./vscodeapi";

export const SCHEME = "lyma-agent";
const REJECT = "Reject";
const READ = "Read First";
const DECIDE = "Decide…";

export type ApprovalEditor = Pick<Editor, "confirm" | "warn" | "info" | "open" | "close" | "provide" | "log">;

interface Question {
  readonly params: RequestApprovalParams;
  readonly settle: (approved: boolean | undefined) => void;
  readonly document: string;
}

/** `sha256:3f9a12cc04ee…` as a person compares it: the first twelve digits. */
export function shortHash(hash: string): string {
  const [kind, digits] = hash.includes(":") ? (hash.split(":") as [string, string]) : ["", hash];
  return `${kind}${kind === "" ? "" : ":"}${digits.slice(0, 12)}`;
}

export class Approvals {
  private readonly open = new Map<string, Question>();
  private readonly texts = new Map<string, string>();
  private readonly documents;
  private dialogs: Promise<unknown> = Promise.resolve();
  private count = 0;

  /** `changed` hears that a question came or went. */
  constructor(
    private readonly editor: ApprovalEditor,
    private readonly changed: () => void,
  ) {
    this.documents = editor.provide(SCHEME, (path) => this.texts.get(path) ?? "This question is settled.\n");
  }

  get waiting(): readonly RequestApprovalParams[] {
    return [...this.open.values()].map((question) => question.params);
  }

  /** The server asks. Null where nobody answered: the dialog was dismissed, or the question withdrawn. */
  async answer(params: RequestApprovalParams, stop: Cancellation): Promise<RequestApprovalResult | null> {
    const { hash, nonce } = params;
    const document = this.write(params);
    const approved = await new Promise<boolean | undefined>((settle) => {
      const question = { params, settle, document };
      this.open.set(document, question);
      stop.onCancellationRequested(() => {
        if (this.open.get(document) === question) {
          void this.editor.info(`The question about ${oneLine(params.title, 100)} was withdrawn.`);
        }
        settle(undefined);
      });
      this.changed();
      this.ask(question);
    });
    await this.forget(document);
    return approved === undefined ? null : { hash, nonce, approved };
  }

  /** Ask again what waits; with `hash`, only about that one. Whether anything does. */
  askAgain(hash?: string): boolean {
    const chosen = [...this.open.values()].filter((each) => hash === undefined || each.params.hash === hash);
    for (const question of chosen) this.ask(question);
    return chosen.length > 0;
  }

  /** Show a text as the read-only document of an agent. */
  async show(name: string, text: string): Promise<void> {
    const path = this.path(name);
    this.texts.set(path, text);
    await this.editor.open(this.documents.uri(path));
  }

  /** One dialog after the other. */
  private ask(question: Question): void {
    this.dialogs = this.dialogs
      .then(() => this.decide(question))
      .catch((problem: unknown) => {
        this.editor.log.error(`The question could not be shown: ${String(problem)}`);
        question.settle(undefined);
      });
  }

  private async decide(question: Question): Promise<void> {
    const { params, settle, document } = question;
    if (this.open.get(document) !== question) return;
    await this.editor.open(this.documents.uri(document));
    const approve = `Approve ${shortHash(params.hash)}…`;
    // The first button is the one that Enter presses, and a key that was meant for a text must not approve.
    const chosen = await this.editor.confirm(oneLine(params.title), details(params), READ, REJECT, approve);
    if (chosen === READ) {
      void this.editor.warn(`${oneLine(params.title)} It waits for you.`, {
        label: DECIDE,
        run: () => this.askAgain(params.hash),
      });
      return;
    }
    settle(chosen === approve ? true : chosen === REJECT ? false : undefined);
  }

  private write(params: RequestApprovalParams): string {
    const path = this.path(shortHash(params.hash).replace(":", "-"));
    const above = params.path.map((name) => oneLine(name)).join(" › ");
    const by = above === "" ? "" : `asked by ${above}\n\n`;
    this.texts.set(path, `${oneLine(params.title)}\n${params.hash}\n\n${by}${inert(params.text)}\n`);
    return path;
  }

  private path(name: string): string {
    this.count += 1;
    return `/${name.replaceAll(/[^\w.-]/g, "-")}/${this.count}/agent.txt`;
  }

  private async forget(document: string): Promise<void> {
    this.open.delete(document);
    this.texts.delete(document);
    await this.editor.close(this.documents.uri(document));
    this.changed();
  }
}

function details(params: RequestApprovalParams): string {
  const above = params.path.map((name) => oneLine(name)).join(" › ");
  return [
    inert(params.summary).slice(0, 1000),
    ...(above === "" ? [] : [`Asked by ${above}.`]),
    ...(params.summary.includes(params.hash) ? [] : [`Hash: ${oneLine(params.hash)}`]),
    "Everything that it may do is in the document behind this question. Closing the question approves nothing.",
  ].join("\n\n");
}
