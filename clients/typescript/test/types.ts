// What a type checker has to accept, and what it has to refuse. Never run.

import { type Fact, Recollect } from "../dist/index.js";

const memory = new Recollect({ url: "http://127.0.0.1:8400", key: "rk" });
const alice = memory.space("alice");

export async function accepted(): Promise<Fact[]> {
  const session = await alice.session(["telegram", 42, "main"], { agent: "assistant" });
  await session.append({ role: "user", content: "Hello." }, { idempotencyKey: "k" });
  const { hits } = await alice.recall({ query: "hello", kinds: ["fact", "record"] });
  const quote: string | undefined = hits[0]?.sources[0]?.quote;
  const found: Fact[] = [];
  for await (const fact of alice.facts.listEach({ tag: quote ?? "preference" })) found.push(fact);
  return found;
}

export async function refused(): Promise<void> {
  // @ts-expect-error: a query is a text
  await alice.recall({ query: 1 });
  // @ts-expect-error: there is no such kind
  await alice.recall({ query: "x", kinds: ["feeling"] });
  // @ts-expect-error: a fact says something
  await alice.facts.add({});
  // @ts-expect-error: there is no such field
  await alice.context({ query: "x", max_token: 1 });
  // @ts-expect-error: a page has a path
  await alice.documents.read();
}
