// Markdown as a tree of a few harmless elements. No HTML, no images, no link but to the web, whatever the text says.
import MarkdownIt, { type Token } from "markdown-it";
import { inert } from "./inert";

export type Node = string | Element;

export interface Element {
  readonly tag: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: Node[];
}

function newParser() {
  const made = new MarkdownIt("default", { html: false, linkify: false, typographer: false, maxNesting: 20 });
  made.disable(["image", "html_inline", "html_block"], true);
  made.validateLink = () => true; // links are judged below, so that a refused one is shown as text
  return made;
}

const parser = newParser();

const TAGS = new Set(
  "p h1 h2 h3 h4 h5 h6 blockquote ul ol li em strong s table thead tbody tr th td hr br code pre a".split(" "),
);
const WEB = /^https?:\/\/[^\s\\]+$/i;

/** Where a link leads, or undefined where it may not lead anywhere. */
export function webAddress(href: string): string | undefined {
  if (!WEB.test(href) || !URL.canParse(href)) return undefined;
  const { protocol, username, password } = new URL(href);
  const isPlain = username === "" && password === "" && (protocol === "https:" || protocol === "http:");
  return isPlain ? href : undefined;
}

/** The most cells of a table: a row of two characters is as wide as the head, so that a short text can ask for very many. */
export const CELL_LIMIT = 2000;
const withoutTables = newParser().disable("table");

/** The tree of `text`. */
export function render(text: string): Node[] {
  const shown = inert(text);
  return build((cells(shown) > CELL_LIMIT ? withoutTables : parser).parse(shown, {}));
}

/** At most how many cells a table in `text` could have. */
function cells(text: string): number {
  const lines = text.split("\n");
  return lines.length * Math.max(...lines.map((line) => line.split("|").length - 1));
}

function build(tokens: readonly Token[]): Node[] {
  const root: Node[] = [];
  const open: Node[][] = [root];
  const add = (node: Node) => open.at(-1)?.push(node);
  for (const token of tokens) {
    if (token.nesting === -1) {
      if (open.length > 1) open.pop();
    } else if (token.nesting === 1) {
      const children: Node[] = token.hidden ? (open.at(-1) ?? root) : [];
      if (!token.hidden) add(opening(token, children));
      open.push(children);
    } else {
      leaf(token).forEach(add);
    }
  }
  return root;
}

function opening(token: Token, children: Node[]): Element {
  const start = String(token.attrGet("start") ?? "");
  const style = String(token.attrGet("style") ?? "");
  if (token.type === "link_open") {
    const address = webAddress(String(token.attrGet("href") ?? ""));
    if (address === undefined) {
      return { tag: "span", attributes: { class: "refused", title: "This link leads nowhere safe." }, children };
    }
    return { tag: "a", attributes: { href: address, title: address }, children };
  }
  const align = /^text-align:(left|center|right)$/.exec(style)?.[1];
  const attributes = {
    ...(/^\d{1,9}$/.test(start) ? { start } : {}),
    ...(align === undefined ? {} : { class: align }),
  };
  return { tag: TAGS.has(token.tag) ? token.tag : "span", attributes, children };
}

const LEAVES: Readonly<Record<string, (token: Token) => Node[]>> = {
  inline: (token) => build(token.children ?? []),
  text: (token) => [token.content],
  softbreak: () => ["\n"],
  hardbreak: () => [{ tag: "br", attributes: {}, children: [] }],
  hr: () => [{ tag: "hr", attributes: {}, children: [] }],
  code_inline: (token) => [{ tag: "code", attributes: {}, children: [token.content] }],
  code_block: (token) => [code("", token.content)],
  fence: (token) => [code(token.info.trim().split(/\s+/)[0] ?? "", token.content)],
};

function leaf(token: Token): Node[] {
  return (LEAVES[token.type] ?? LEAVES.text)?.(token) ?? [];
}

function code(language: string, text: string): Element {
  const attributes = language === "" ? {} : { "data-language": language.slice(0, 30) };
  return { tag: "pre", attributes, children: [{ tag: "code", attributes: {}, children: [text] }] };
}
