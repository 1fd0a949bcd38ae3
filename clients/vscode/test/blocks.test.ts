import assert from "node:assert/strict";
import { test } from "node:test";
import { BLOCK_LIMIT, BLOCK_LINES, Blocks, LINE_LIMIT, TEXT_LIMIT } from "../src/view/blocks";
import { render } from "../src/view/markdown";

const ALL = `# Title

A paragraph
of two lines.

1. one

   still one
2. two

\`\`\`python
def f():

    return 1

\`\`\`
after

    indented

end`;

function fed(text: string, step: number): { done: string[]; open: string } {
  const blocks = new Blocks();
  const done: string[] = [];
  for (let at = 0; at < text.length; at += step) done.push(...blocks.push(text.slice(at, at + step)));
  return { done, open: blocks.open };
}

test("the parts make the whole, whatever the steps", () => {
  for (const step of [1, 2, 7, 1000]) {
    const { done, open } = fed(ALL, step);
    assert.equal(done.join("") + open, ALL);
    assert.deepEqual(done, fed(ALL, 1).done);
  }
});

test("the blocks rendered one by one are the text rendered at once", () => {
  const { done, open } = fed(ALL, 3);
  assert.ok(done.length >= 3);
  assert.deepEqual([...done, open].flatMap(render), render(ALL));
});

test("a fence is not cut at its empty lines", () => {
  const { done } = fed("```\na\n\nb\n\nc\n```\n\nd\n", 1);
  assert.deepEqual(done, ["```\na\n\nb\n\nc\n```\n\n"]);
});

test("a line of a megabyte is many small blocks, and no character is halved", () => {
  const { done, open } = fed("😀".repeat(300_000), 4096);
  assert.ok([...done, open].every((block) => block.length <= BLOCK_LIMIT));
  assert.equal([...done, open].join(""), "😀".repeat(300_000));
  assert.ok(done.every((block) => !/[\ud800-\udbff]$/.test(block)));
});

test("a long fence goes on as a fence", () => {
  const { done, open } = fed("~~~text\n" + "x = 1\n".repeat(9000) + "~~~\nend", 5000);
  assert.ok(done.length > 2);
  for (const block of done) {
    const [node, ...more] = render(block);
    assert.equal(typeof node === "object" ? node.tag : node, "pre");
    assert.deepEqual(more, []);
  }
  assert.match(open, /end$/);
});

test("whatever its lines are, a text is cut, and into small blocks", () => {
  const long = "x".repeat(100_000);
  const texts = [
    "```\n" + long,
    "```" + long + "\na\nb\n",
    "`".repeat(50_000) + "\na",
    "~~~\n" + long + "\n~~~\n" + long,
  ];
  for (const text of [...texts, "> ".repeat(15) + "a\n".repeat(9000)]) {
    for (const step of [37, text.length]) {
      const { done, open } = fed(text, step);
      assert.ok(
        [...done, open].every((block) => block.length <= BLOCK_LIMIT && block.split("\n").length <= BLOCK_LINES + 2),
      );
      assert.ok([...done, open].join("").length >= text.length);
    }
  }
});

test("a fence without a name goes on as a fence, and ends where it ends", () => {
  const { done, open } = fed("```\n" + "x = 1\n".repeat(9000) + "```\nend", 5000);
  assert.ok(done.length > 5);
  for (const block of done) assert.match(block, /^```\n/);
  assert.equal(render(open).at(-1) !== undefined && tagsOf(open).join(), "pre,p");
  const { done: parts } = fed("x".repeat(9000) + "\n```js\ncode\n```\n\nend\n", 50_000);
  assert.deepEqual(parts.flatMap(tagsOf), ["p", "p", "pre"]);
});

function tagsOf(text: string): string[] {
  return render(text).map((node) => (typeof node === "string" ? node : node.tag));
}

test("as many lines are shown as there is room for", () => {
  const blocks = new Blocks();
  const done = [...blocks.push("a\n\n".repeat(LINE_LIMIT)), ...blocks.push("more"), blocks.open];
  assert.equal(done.join("").split("\n").length - 1, LINE_LIMIT);
  assert.equal(blocks.hidden, LINE_LIMIT + LINE_LIMIT / 2 + "more".length);
});

test("what is beyond the limit is counted, not kept", () => {
  const blocks = new Blocks();
  let kept = 0;
  for (let step = 0; step < 30; step += 1) kept += blocks.push("y".repeat(100_000)).join("").length;
  assert.equal(kept + blocks.open.length, TEXT_LIMIT);
  assert.equal(blocks.hidden, 3_000_000 - TEXT_LIMIT);
});
