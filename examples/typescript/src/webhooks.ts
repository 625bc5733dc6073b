// A receiver of webhooks: it accepts what is signed, recent and new.
//
//     SLOTLOCK_WEBHOOK_SECRET=whsec_... node build/webhooks.js 8090
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";

const TOLERANCE_S = 300;
const MAX_BODY_BYTES = 64 * 1024;

/** What happened: ids and a version, so that the API is asked for the rest. */
export interface WebhookMessage {
  type: string;
  timestamp: string;
  data: { version: number } & Partial<Record<string, string | number>>;
}

/** Return the message of a request; throws if it is forged, altered or old. */
export function verify(secret: string, headers: IncomingHttpHeaders, body: Buffer): WebhookMessage {
  const timestamp = String(headers["webhook-timestamp"]);
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!(age <= TOLERANCE_S)) throw new Error("the message is too old");
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${timestamp}.`), body]);
  const expected = Buffer.from(`v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
  // While the secret is rotated, there is one signature for each.
  const signatures = String(headers["webhook-signature"]).split(" ").map((each) => Buffer.from(each));
  if (!signatures.some((each) => each.length === expected.length && timingSafeEqual(each, expected))) {
    throw new Error("no signature fits");
  }
  return JSON.parse(body.toString()) as WebhookMessage;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Error("the body is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

// A real receiver stores the ids with what it makes of the messages.
const seen = new Set<string>();
const server = createServer((request, response) => {
  void readBody(request)
    .then((body) => {
      const message = verify(process.env["SLOTLOCK_WEBHOOK_SECRET"] ?? "", request.headers, body);
      const id = String(request.headers["webhook-id"]);
      // A message comes again if its response was lost.
      if (!seen.has(id)) console.log(message.type, message.data);
      seen.add(id);
      response.writeHead(204).end();
    })
    .catch((error: unknown) => response.writeHead(400).end(String(error)));
});
server.listen(Number(process.argv[2] ?? 8090), "127.0.0.1");
