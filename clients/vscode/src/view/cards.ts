// The words of the chat view: what an item, a route or a notice is called. Pure, so that it can be tested without a page.
import type { Attempt, Item, Route, SentPart, Usage } from "../protocol.gen";
import { oneLine } from "./inert";

const NEXT: Readonly<Record<Route["next"], string>> = {
  done: "answered",
  rotate: "next key",
  fallback: "next provider",
  retry: "asked again",
  shrink: "asked again with less",
  repair: "asked again, mended",
  wait: "waiting",
  fail: "gave up",
};

/** "alpha key …ab21: rate limit (429), next key"; the attempt that answered at once needs no words. */
export function routeNote(route: Attempt): string {
  const key = route.key === undefined ? "" : ` key ${oneLine(route.key)}`;
  const who = `${oneLine(route.provider)}${key}`;
  if (route.class === "ok") return `${who} answered in ${seconds(route.ms)} (${oneLine(route.model)})`;
  const status = route.status === undefined ? "" : ` (${route.status})`;
  const wait = route.retryAfterMs === undefined ? "" : `, may be asked again in ${seconds(route.retryAfterMs)}`;
  return `${who}: ${oneLine(route.class).replaceAll("_", " ")}${status}${wait}; ${NEXT[route.next]}`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

/** The head of a card: what an item is, or what it is becoming while it is not whole. */
export function cardTitle(item: Item, isWhole = true): string {
  switch (item.kind) {
    case "thinking":
      return "Thinking";
    case "tool_call":
      return `${oneLine(item.name)} ${callSummary(item.arguments)}`.trim();
    case "tool_result":
      return item.isError ? "Failed" : "Result";
    case "command_output":
      return `$ ${oneLine(item.command)}${item.exitStatus === undefined ? "" : `  → ${item.exitStatus}`}`;
    case "edit":
      return `${editVerb(item.applied, isWhole)} ${oneLine(item.path)} ${changes(item.diff)}`.trim();
    case "run":
      return `Agent ${[...item.path, item.name].map((name) => oneLine(name)).join(" › ")}${item.status === undefined ? "" : `: ${oneLine(item.status)}`}`;
    default:
      return "";
  }
}

function editVerb(applied: boolean, isWhole: boolean): string {
  if (!isWhole) return "Changing";
  return applied ? "Changed" : "Not changed";
}

function callSummary(args: Record<string, unknown>): string {
  const first = Object.values(args).find((value) => typeof value === "string");
  return typeof first === "string" ? oneLine(first, 80) : "";
}

function changes(diff: string): string {
  const count = (mark: string) =>
    diff.split("\n").filter((line) => line.startsWith(mark) && !line.startsWith(mark.repeat(3))).length;
  return diff === "" ? "" : `+${count("+")} −${count("-")}`;
}

/** The body of a card, as it was sent. */
export function cardText(item: Item): string {
  if (item.kind === "tool_call") {
    return Object.keys(item.arguments).length === 0 ? "" : JSON.stringify(item.arguments, undefined, 2);
  }
  return item.kind === "edit" ? item.diff : item.text;
}

/** "$0.0026 · 812 in, 9 out". */
export function usageNote(usage: Usage): string {
  const tokens = `${usage.inputTokens.toLocaleString("en")} in, ${usage.outputTokens.toLocaleString("en")} out`;
  const about = usage.estimated ? "about " : "";
  return usage.costMicros === undefined ? `${about}${tokens}` : `${about}${money(usage.costMicros)} · ${tokens}`;
}

/** Money from integer USD micros. */
export function money(micros: number): string {
  const dollars = micros / 1_000_000;
  return `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`;
}

/** "main.py (1,204 characters)". */
export function sentNote(part: SentPart): string {
  return `${oneLine(part.what)} (${part.characters.toLocaleString("en")} characters)`;
}

const STOPS: Readonly<Record<string, string>> = {
  cancelled: "Stopped.",
  max_tokens: "The answer was cut short: the model's limit is reached.",
  max_steps: "Out of steps.",
  budget: "Out of budget.",
  refusal: "The model refused.",
  interrupted: "The answer broke off.",
};

/** Why a turn ended, where it did not simply end. */
export function stopNote(reason: string): string {
  return STOPS[reason] ?? "";
}
