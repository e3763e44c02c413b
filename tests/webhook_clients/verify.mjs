// Verifies a request of a webhook, which is read as JSON, and prints what came of each attempt.
import { Webhook } from 'standardwebhooks';
let given = '';
for await (const chunk of process.stdin) given += chunk;
const { secret, other, body, headers } = JSON.parse(given);
const attempt = (key, text, sent) => { try { return new Webhook(key).verify(text, sent); } catch (error) { return error.name + ': ' + error.message; } };
const late = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 600) };
console.log(JSON.stringify({
  verified: attempt(secret, body, headers),
  changed: attempt(secret, body + ' ', headers),
  late: attempt(secret, body, late),
  other: attempt(other, body, headers),
}));
