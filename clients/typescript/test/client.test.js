// Against a server that runs: RECOLLECT_URL and RECOLLECT_KEY say where. Run by the project's suite.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";

import { ConnectionError, Recollect, RecollectError } from "../dist/index.js";

const url = process.env.RECOLLECT_URL;
const key = process.env.RECOLLECT_KEY;
const memory = new Recollect({ url, key });
const alice = memory.space("alice & co/ü"); // a name that has to be escaped

/** A server that answers in turn, and what it was asked. */
async function answering(...answers) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push({ method: request.method, key: request.headers["idempotency-key"] });
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === "hang up") return request.socket.destroy();
    if (answer === "say nothing") return undefined;
    response.writeHead(answer.status, { "Content-Type": "application/json", ...answer.headers });
    return response.end(answer.body ?? "{}");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => server.closeAllConnections() ?? server.close());
  return { asked, url: `http://127.0.0.1:${server.address().port}` };
}

test("a conversation is told back, with its source", async () => {
  const session = await alice.session("telegram:42:main", { agent: "assistant" });
  await session.append({ role: "user", name: "Ana", content: "I moved to Lisbon in May." });
  await session.appendMany({ messages: [{ role: "assistant", content: "Noted." }] });
  const again = await alice.session("telegram:42:main", { agent: "assistant" });
  assert.equal(again.id, session.id);

  const { hits } = await alice.recall({ query: "where did Ana move?" });
  assert.equal(hits[0].sources[0].session_id, session.id);
  const block = await alice.context({ query: "where did Ana move?", max_tokens: 300 });
  assert.match(block.text, /Lisbon/);
  assert.ok(block.token_count <= 300);
  assert.ok(await alice.cite({ context: block, used: ["m1"] }));

  const state = await alice.sessions.get(session.id);
  assert.equal(state.last_seq, 2);
});

test("every page of a list, one item at a time", async () => {
  const many = memory.space("many");
  for (let number = 0; number < 7; number++) await many.facts.add({ content: `Fact number ${number}.` });
  const found = [];
  for await (const fact of many.facts.listEach({ limit: 3 })) found.push(fact.content);
  assert.equal(new Set(found).size, 7);
  const first = await many.facts.list({ limit: 3 });
  assert.equal(first.facts.length, 3);
  assert.ok(first.next);
});

test("a page has versions, and a stale one is refused with the current one", async () => {
  const path = "~/memory/people/ana";
  const page = await alice.documents.write(path, { body: "Lives in Lisbon." }, { expectedVersion: "none" });
  assert.equal(page.version, 1);
  await alice.documents.append(path, { text: "Likes the sun." }, { expectedVersion: 1 });
  const stale = alice.documents.write(path, { body: "Else." }, { expectedVersion: 1 });
  await assert.rejects(stale, (error) => {
    assert.ok(error instanceof RecollectError);
    assert.equal(error.status, 412);
    assert.equal(error.kind, "stale-version");
    assert.equal(error.problem.current_version, 2);
    return true;
  });
  const twice = alice.documents.write(path, { body: "Else." }, { expectedVersion: "none" });
  await assert.rejects(twice, RecollectError);
});

test("what is wrong is said by the server, in its words", async () => {
  await assert.rejects(alice.facts.add({ content: "" }), (error) => error.status === 422 && error.message.length > 10);
  await assert.rejects(alice.facts.get("no such fact"), (error) => error.status === 404);
  const stranger = new Recollect({ url, key: "rk_wrong" });
  await assert.rejects(stranger.space("x").counts(), (error) => error.status === 401 && !error.retryHelps);
});

test("a request with a key of its own is stored once", async () => {
  const session = await memory.space("once").session("a:b:c");
  const options = { idempotencyKey: "the-same" };
  const first = await session.append({ role: "user", content: "Only once." }, options);
  const second = await session.append({ role: "user", content: "Only once." }, options);
  assert.deepEqual(second, first);
});

test("what can be repeated is tried again with the same key, and nothing else is", async () => {
  const busy = await answering({ status: 503, headers: { "Retry-After": "0" } }, "hang up", { status: 201 });
  await new Recollect({ url: busy.url, key }).space("a").facts.add({ content: "x" });
  assert.equal(busy.asked.length, 3);
  assert.ok(busy.asked[0].key);
  assert.equal(new Set(busy.asked.map((each) => each.key)).size, 1);

  const broken = await answering("hang up");
  await assert.rejects(new Recollect({ url: broken.url, key }).space("a").facts.update("f", { content: "x" }), ConnectionError);
  assert.equal(broken.asked.length, 1); // a PATCH without a key: it may have been done

  const refused = await answering({ status: 409, body: "not of Recollect" });
  await assert.rejects(new Recollect({ url: refused.url, key }).spaces(), (error) => error.status === 409);
  assert.equal(refused.asked.length, 1);
});

test("a request ends when its time is over or somebody cancels it", async () => {
  const silent = await answering("say nothing");
  const patient = new Recollect({ url: silent.url, key, retries: 0, timeoutMs: 50 });
  await assert.rejects(patient.spaces(), ConnectionError);
  const cancelled = AbortSignal.abort();
  await assert.rejects(patient.spaces({}, { signal: cancelled }), { name: "AbortError" });
});

test("events arrive as they happen", async () => {
  const stop = new AbortController();
  for await (const status of alice.events({ signal: stop.signal })) {
    assert.equal(typeof status.marked_count, "number");
    break;
  }
  stop.abort();
});

test("what is forgotten is gone, and the receipt says it", async () => {
  const space = memory.space("forgetting");
  const session = await space.session("x:y:z");
  await session.append({ role: "user", content: "A secret party." });
  const receipt = await space.forget({ session: session.id });
  assert.equal(receipt.records, 1);
  const { hits } = await space.recall({ query: "secret party" });
  assert.deepEqual(hits, []);
});
