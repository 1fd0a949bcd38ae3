import assert from "node:assert/strict";
import { test } from "node:test";
import { Blocks } from "../src/view/blocks";
import { inert, oneLine, withoutLinks } from "../src/view/inert";
import { type Node, render, webAddress } from "../src/view/markdown";

function walk(nodes: readonly Node[], seen: (node: Exclude<Node, string>) => void): void {
  for (const node of nodes) {
    if (typeof node === "string") continue;
    seen(node);
    walk(node.children, seen);
  }
}

function tags(text: string): string[] {
  const found: string[] = [];
  walk(render(text), ({ tag }) => found.push(tag));
  return found;
}

function words(nodes: readonly Node[]): string {
  return nodes.map((node) => (typeof node === "string" ? node : words(node.children))).join("");
}

const ATTACKS = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "![x](https://example.org/beacon.png)",
  "[x](command:workbench.action.quit)",
  "[x](vscode://ms-vscode/run)",
  "[x](javascript:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "[x](file:///etc/passwd)",
  "[x](//example.org)",
  "[x](https://user:pass@example.org/)",
  '<https://example.org/"onclick=alert(1)>',
  "[x]: command:quit\n\n[x]",
  '[x](https://example.org "onmouseover=alert(1)")',
  "<svg><a xlink:href='javascript:alert(1)'>x</a></svg>",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
  "<iframe srcdoc='<script>1</script>'></iframe>",
];
const ALLOWED = new Set(["p", "a", "span", "pre", "code", "em", "strong"]);

for (const attack of ATTACKS) {
  test(`inert: ${attack.slice(0, 50)}`, () => {
    walk(render(attack), ({ tag, attributes }) => {
      assert.ok(ALLOWED.has(tag), tag);
      assert.deepEqual(
        Object.keys(attributes).filter((name) => !["href", "title", "class"].includes(name)),
        [],
      );
      if (attributes.href !== undefined) assert.match(attributes.href, /^https:\/\/example\.org/);
    });
  });
}

test("only the web may be linked to", () => {
  assert.equal(webAddress("https://example.org/a?b=c#d"), "https://example.org/a?b=c#d");
  for (const wrong of ["command:x", "https:example", "HTTPS:\\\\evil", "https://a b", " https://example.org", ""]) {
    assert.equal(webAddress(wrong), undefined, wrong);
  }
});

test("ordinary Markdown becomes ordinary elements", () => {
  assert.deepEqual(tags("# A\n\n- *b*\n- **c** `d`\n"), ["h1", "ul", "li", "em", "li", "strong", "code"]);
  assert.deepEqual(tags("|a|b|\n|:-:|--|\n|1|2|").slice(0, 3), ["table", "thead", "tr"]);
  assert.deepEqual(render("```ts x\n1 < 2\n```"), [
    {
      tag: "pre",
      attributes: { "data-language": "ts" },
      children: [{ tag: "code", attributes: {}, children: ["1 < 2\n"] }],
    },
  ]);
  assert.equal(words(render("a  \nb & c &amp; d")), "ab & c & d");
});

test("text that hides or reorders other text is shown by name", () => {
  assert.equal(inert("a\u202eb\u2066c\u200bd"), "a[U+202E]b[U+2066]c[U+200B]d");
  assert.equal(inert("\u001b[31mred\u0007\u0000"), "␛[31mred␇␀");
  assert.equal(inert("one\r\ntwo\ttab\n"), "one\ntwo\ttab\n");
  assert.equal(inert("over\rwritten"), "over␍written");
  assert.equal(inert("👩‍💻 a\u200db"), "👩‍💻 a[U+200D]b");
  assert.equal(inert("\u{e0041}x"), "[U+E0041]x");
  assert.equal(inert("naïve Ωμέγα 漢字 ÷"), "naïve Ωμέγα 漢字 ÷");
});

test("a notification gets no link from anybody's words", () => {
  assert.equal(withoutLinks("[x](command:a) [y](https://b)"), "[x] (command:a) [y] (https://b)");
});

test("a title is one short line", () => {
  assert.equal(oneLine("a\n\n  b\u202e"), "a b[U+202E]");
  assert.equal(oneLine("x".repeat(500), 10), "xxxxxxxxx…");
});

test("hostile nesting takes no time, whatever a short text asks for", () => {
  const columns = "|" + "a|".repeat(100) + "\n|" + "-|".repeat(100) + "\n";
  const texts = ["[", "*a ", ">", "- ", "**a*", "a**b ", "[a](", "[a]: x\n"].map((each) => each.repeat(3000));
  for (const text of [
    ...texts,
    "`".repeat(9000) + "a",
    columns + "|\n".repeat(5000),
    "> ".repeat(15) + "a\n".repeat(5000),
  ]) {
    const blocks = new Blocks();
    for (const block of [...blocks.push(text), blocks.open]) {
      const { user } = process.cpuUsage();
      const nodes = render(block);
      assert.ok(process.cpuUsage().user - user < 250_000, block.slice(0, 20)); // a frame in a page has a tenth of this
      assert.ok(count(nodes) < 10_000, block.slice(0, 20));
    }
  }
});

test("a table is a table as long as it is of a size that a person reads", () => {
  assert.ok(tags("|a|b|\n|-|-|\n" + "|1|2|\n".repeat(190)).includes("table"));
});

function count(nodes: readonly Node[]): number {
  let found = 0;
  walk(nodes, () => (found += 1));
  return found;
}
