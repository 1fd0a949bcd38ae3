// The status bar and what can be asked of the house: who answers, at what cost, how each provider fares.
import type { ClientState } from "./client";
import type { Event, ModelsResult, ProviderStatus, StatusResult } from "./protocol.gen";
import { money } from "./view/cards";
import { oneLine } from "./view/inert";

export interface Line {
  readonly text: string;
  readonly tooltip: string;
}

/** What the status bar shows. Cost is summed over the turns that this window has seen. */
export class StatusLine {
  private readonly costs = new Map<string, number | undefined>();
  private answering = "";
  private model = "";
  private server: ClientState = { is: "stopped" };

  hear(event: Event): void {
    if (event.replay === true) return;
    if (event.type === "route" && event.class === "ok") {
      [this.answering, this.model] = [oneLine(event.provider, 20), oneLine(event.model, 60)];
    }
    if (event.type === "usage" || event.type === "turn.completed") {
      this.costs.set(`${event.session} ${event.turn}`, event.usage.costMicros);
    }
  }

  tell(state: ClientState): void {
    this.server = state;
  }

  line(): Line {
    const { is } = this.server;
    if (is === "starting") return { text: "$(loading~spin) Lyma", tooltip: "The server is starting" };
    if (is === "crashed") return { text: "$(warning) Lyma", tooltip: "The server has stopped" };
    const cost = this.cost();
    const text = ["$(comment) Lyma", this.answering, cost].filter((part) => part !== "");
    const who =
      this.answering === "" ? "Nothing has been asked yet" : `${this.answering} (${this.model}) answered last`;
    return { text: text.join(" · "), tooltip: cost === "" ? who : `${who}; ${cost} since this window opened` };
  }

  private cost(): string {
    const known = [...this.costs.values()].filter((cost) => cost !== undefined);
    if (known.length === 0) return "";
    const isWhole = known.length === this.costs.size;
    return `${isWhole ? "" : "≥ "}${money(known.reduce((sum, cost) => sum + cost, 0))}`;
  }
}

/** The state of the house as Markdown. */
export function describeStatus(status: StatusResult): string {
  return [
    `# Lyma ${status.version}`,
    `Home: ${status.home}\\\nSandbox: ${status.sandbox}\\\nFolders: ${status.roots.join(", ") || "none"}`,
    ...status.providers.map(describeProvider),
    "Settings: `lyma config show` in a terminal prints each with where it came from; `~/.lyma/config.toml` holds them.",
    "",
  ].join("\n\n");
}

function describeProvider(provider: ProviderStatus): string {
  const cost = provider.costMicrosToday === null ? "cost unknown" : money(provider.costMicrosToday);
  const breaker = provider.breaker === "closed" ? "" : `, passed over (${provider.breaker.replace("_", " ")})`;
  const keys = provider.keys.map(({ key, state, account, until, reason }) => {
    const more = [account, until === undefined ? undefined : `until ${until}`, reason].filter(
      (part) => part !== undefined,
    );
    return `- key ${oneLine(key)}: ${state}${more.length === 0 ? "" : ` (${more.map((part) => oneLine(part)).join(", ")})`}`;
  });
  return [
    `## ${oneLine(provider.name)}${breaker}`,
    "",
    `${oneLine(provider.model)}${provider.baseUrl === undefined ? "" : ` at ${oneLine(provider.baseUrl)}`}; today ${provider.tokensToday.toLocaleString("en")} tokens, ${cost}`,
    "",
    ...keys,
  ].join("\n");
}

/** The models as Markdown. */
export function describeModels({ models, failures }: ModelsResult): string {
  const price = (micros: number | undefined) => (micros === undefined ? "" : money(micros));
  const rows = models.map(
    ({ provider, id, contextTokens, inputMicros, outputMicros }) =>
      `| ${oneLine(provider)} | ${oneLine(id)} | ${contextTokens?.toLocaleString("en") ?? ""} | ${price(inputMicros)} | ${price(outputMicros)} |`,
  );
  const head = "| provider | model | context | a million tokens in | out |\n|---|---|---|---|---|";
  return [`# Models`, [head, ...rows].join("\n"), ...failures.map(({ message }) => oneLine(message)), ""].join("\n\n");
}
