"""Span attribute names, declared once.

GenAI and messaging names follow the OpenTelemetry semantic conventions as of their May 2026 state; the GenAI group
lives in a repository of its own and still changes, which is why no other module spells these names.
"""

GEN_AI_OPERATION = "gen_ai.operation.name"
GEN_AI_PROVIDER = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL = "gen_ai.request.model"
GEN_AI_FINISH_REASONS = "gen_ai.response.finish_reasons"
GEN_AI_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
GEN_AI_INPUT_TOKENS = "gen_ai.usage.input_tokens"
GEN_AI_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
GEN_AI_CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_CACHE_WRITE = "gen_ai.usage.cache_write.input_tokens"
GEN_AI_CACHE_CREATION = "gen_ai.usage.cache_creation.input_tokens"
GEN_AI_REASONING = "gen_ai.usage.reasoning.output_tokens"
GEN_AI_CONVERSATION = "gen_ai.conversation.id"
GEN_AI_AGENT_NAME = "gen_ai.agent.name"
GEN_AI_AGENT_VERSION = "gen_ai.agent.version"
GEN_AI_TOOL_NAME = "gen_ai.tool.name"
GEN_AI_TOOL_CALL = "gen_ai.tool.call.id"
GEN_AI_TOOL_TYPE = "gen_ai.tool.type"
GEN_AI_DATA_SOURCE = "gen_ai.data_source.id"
GEN_AI_TOP_K = "gen_ai.request.top_k"
GEN_AI_EMBEDDING_DIMENSIONS = "gen_ai.embeddings.dimension.count"

MCP_METHOD = "mcp.method.name"

MESSAGING_SYSTEM = "messaging.system"
MESSAGING_OPERATION = "messaging.operation.name"
MESSAGING_OPERATION_TYPE = "messaging.operation.type"
MESSAGING_DESTINATION = "messaging.destination.name"
MESSAGING_TEMPLATE = "messaging.destination.template"
MESSAGING_MESSAGE_ID = "messaging.message.id"
NATS_DELIVERIES = "messaging.nats.delivery_count"

DB_SYSTEM = "db.system.name"
DB_OPERATION = "db.operation.name"
DB_COLLECTION = "db.collection.name"

ERROR_TYPE = "error.type"

TENANT = "wayline.tenant"
JOB = "wayline.job_id"
STEP = "wayline.step"
ATTEMPT = "wayline.attempt"
COST = "wayline.cost.usd"
COST_LOWER = "wayline.cost.lower_usd"
COST_UPPER = "wayline.cost.upper_usd"
CACHE_SAVED = "wayline.cache.saved_usd"
EFFECT = "wayline.tool.effect"
"""Ours: what no convention has a name for yet."""

ANCHOR = "wayline"
"""The `tracestate` member that carries the nearest span made from the log: where a span goes whose parent was lost."""
