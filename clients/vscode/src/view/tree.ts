// The elements of the page: made from a tree of Markdown, and amended to another.
import type { Element as MarkdownElement, Node as MarkdownNode } from "./markdown";

export function element(tag: string, className = "", text = ""): HTMLElement {
  const made = document.createElement(tag);
  if (className !== "") made.className = className;
  if (text !== "") made.textContent = text;
  return made;
}

export function grow(node: MarkdownNode): Node {
  if (typeof node === "string") return document.createTextNode(node);
  const made = document.createElement(node.tag);
  for (const [name, value] of Object.entries(node.attributes)) made.setAttribute(name, value);
  made.append(...node.children.map(grow));
  return made;
}

/** Make what `parent` holds, which is `was`, into `now`; what is the same is left alone, so that it is not laid out again. */
export function amend(parent: Node, was: readonly MarkdownNode[], now: readonly MarkdownNode[]): void {
  for (const [index, node] of now.entries()) {
    const [before, place] = [was[index], parent.childNodes[index]];
    if (before === undefined || place === undefined) parent.appendChild(grow(node));
    else if (typeof before === "object" && typeof node === "object" && isAlike(before, node)) {
      amend(place, before.children, node.children);
    } else if (before !== node) parent.replaceChild(grow(node), place);
  }
  while (parent.childNodes.length > now.length) parent.lastChild?.remove();
}

function isAlike(one: MarkdownElement, other: MarkdownElement): boolean {
  return one.tag === other.tag && JSON.stringify(one.attributes) === JSON.stringify(other.attributes);
}
