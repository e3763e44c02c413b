// The official TypeScript clients at Wayline's /mcp: `official_client.mjs VERSION URL`, where VERSION is `new` or `old`.
import process from "node:process";

const [version, url] = process.argv.slice(2);
const library = version === "old" ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client";
const http = version === "old" ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client";
const { Client } = await import(library);
const { StreamableHTTPClientTransport } = await import(http);

const client = new Client({ name: "reference", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const sum = await client.callTool({ name: "calculator", arguments: { expression: "6 * 7" } });
const answer = await client.callTool({ name: "run_agent", arguments: { agent: "user", input: "Go." } });
const { resources } = await client.listResources();
const result = await client.readResource({ uri: `job://${answer.structuredContent.job_id}/result` });
await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    calculated: sum.content[0].text,
    answer: answer.structuredContent.answer,
    resources: resources.length,
    status: JSON.parse(result.contents[0].text).status,
  }),
);
