// Asks an agent through each client, and prints what came of each question.
import OpenAI from 'openai';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
const base = process.env.OPENAI_BASE_URL;
const out = {};
async function attempt(name, f) { try { out[name] = await f(); } catch (e) { out[name] = 'ERROR ' + (e.stack||e).toString().slice(0, 400); } }
const c = new OpenAI({ baseURL: base, apiKey: 'x', maxRetries: 0 });
const m = [{ role: 'user', content: 'Is it so?' }];
await attempt('openai plain', async () => (await c.chat.completions.create({ model: 'helper', messages: m })).choices[0].message.content);
await attempt('openai stream', async () => { let t = ''; for await (const k of await c.chat.completions.create({ model: 'helper', messages: m, stream: true })) t += k.choices[0]?.delta?.content ?? ''; return t; });
await attempt('openai helper stream', async () => (await c.chat.completions.stream({ model: 'helper', messages: m }).finalContent()));
await attempt('openai error', async () => { try { await c.chat.completions.create({ model: 'nobody', messages: m }); } catch (e) { return [e.status, e.code, e.param].join(' '); } });
await attempt('openai responses', async () => (await c.responses.create({ model: 'helper', input: 'Is it so?' })).output_text);
await attempt('openai responses stream', async () => { const s = c.responses.stream({ model: 'helper', input: 'Is it so?' }); const r = await s.finalResponse(); return r.output_text; });
await attempt('openai embeddings', async () => (await c.embeddings.create({ model: 'any', input: 'x' })).data[0].embedding.length);
const p = createOpenAI({ baseURL: base, apiKey: 'x' });
await attempt('ai-sdk chat', async () => (await generateText({ model: p.chat('helper'), prompt: 'Is it so?', maxRetries: 0 })).text);
await attempt('ai-sdk chat stream', async () => { let t = ''; for await (const k of streamText({ model: p.chat('helper'), prompt: 'Is it so?', maxRetries: 0 }).textStream) t += k; return t; });
await attempt('ai-sdk responses', async () => (await generateText({ model: p.responses('helper'), system: 'Be kind.', prompt: 'Is it so?', maxRetries: 0 })).text);
await attempt('ai-sdk responses stream', async () => { let t = ''; for await (const k of streamText({ model: p.responses('helper'), prompt: 'Is it so?', maxRetries: 0 }).textStream) t += k; return t; });
const l = new ChatOpenAI({ model: 'helper', apiKey: 'x', maxRetries: 0, configuration: { baseURL: base } });
await attempt('langchain', async () => (await l.invoke('Is it so?')).content);
await attempt('langchain stream', async () => { let t = ''; for await (const k of await l.stream('Is it so?')) t += k.content; return t; });
await attempt('langchain responses', async () => JSON.stringify((await new ChatOpenAI({ model: 'helper', apiKey: 'x', maxRetries: 0, useResponsesApi: true, configuration: { baseURL: base } }).invoke('Is it so?')).content));
await attempt('langchain embed', async () => (await new OpenAIEmbeddings({ apiKey: 'x', configuration: { baseURL: base } }).embedQuery('x')).length);
// Tools that the clients run: what they say of two cities is told to the model, and its answer ends each question.
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const weather = ({ city }) => 'wet in ' + city;
const q = 'What is the weather?';
const fn = { name: 'weather', description: 'The weather of a city.', parameters: schema };
await attempt('openai tools', async () => c.chat.completions.runTools({ model: 'helper', messages: [{ role: 'user', content: q }], tools: [{ type: 'function', function: { ...fn, function: weather, parse: JSON.parse } }] }).finalContent());
await attempt('openai tools stream', async () => c.chat.completions.runTools({ model: 'helper', stream: true, messages: [{ role: 'user', content: q }], tools: [{ type: 'function', function: { ...fn, function: weather, parse: JSON.parse } }] }).finalContent());
await attempt('openai responses tools', async () => {
  const first = await c.responses.create({ model: 'helper', input: q, tools: [{ type: 'function', ...fn, strict: true }] });
  const input = first.output.filter((i) => i.type === 'function_call').map((i) => ({ type: 'function_call_output', call_id: i.call_id, output: weather(JSON.parse(i.arguments)) }));
  return (await c.responses.create({ model: 'helper', input, previous_response_id: first.id })).output_text;
});
const tools = { weather: tool({ description: fn.description, inputSchema: jsonSchema(schema), execute: async (given) => weather(given) }) };
for (const [name, model] of [['chat', p.chat('helper')], ['responses', p.responses('helper')]]) {
  const about = { model, tools, prompt: q, stopWhen: stepCountIs(4), maxRetries: 0 };
  await attempt(`ai-sdk ${name} tools`, async () => (await generateText(about)).text);
  await attempt(`ai-sdk ${name} tools stream`, async () => { let t = ''; for await (const k of streamText(about).textStream) t += k; return t; });
}
for (const useResponsesApi of [false, true]) {
  const bound = new ChatOpenAI({ model: 'helper', apiKey: 'x', maxRetries: 0, useResponsesApi, configuration: { baseURL: base } }).bindTools([{ type: 'function', function: fn }]);
  await attempt(`langchain ${useResponsesApi ? 'responses' : 'chat'} tools`, async () => {
    const said = [new HumanMessage(q)];
    for (let n = 0; n < 4; n++) {
      const answer = await bound.invoke(said);
      if (!answer.tool_calls?.length) return answer.text;
      said.push(answer, ...answer.tool_calls.map((call) => new ToolMessage({ content: weather(call.args), tool_call_id: call.id })));
    }
  });
}
console.log(JSON.stringify(out, null, 1));
