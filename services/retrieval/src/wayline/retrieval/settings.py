"""Every knob of the retrieval service, from `WAYLINE_RETRIEVAL_…` variables."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings, HttpUrl

LEXICAL_MODEL = "lexical-hash-384"
ON_BOARD_MODEL = "all-MiniLM-L6-v2-int8"


class Settings(EnvironmentSettings):
    """How documents are read, cut, embedded and searched."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_RETRIEVAL_")

    embedding_model: str = Field(
        default=ON_BOARD_MODEL,
        description=f"`{ON_BOARD_MODEL}` is on board and understands English; `{LEXICAL_MODEL}` compares words, not "
        "meaning. Any other name is asked of the endpoint at the base URL.",
    )
    embedding_base_url: HttpUrl = Field(
        default="https://api.openai.com/v1", description="An OpenAI-compatible endpoint: {base}/embeddings is called."
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="None: a placeholder, for local servers.")
    embedding_dimensions: int | None = Field(
        default=None, ge=1, le=16_000, description="Ask the endpoint for this many; none: what the model gives."
    )
    embedding_batch: int = Field(default=64, ge=1, le=2_048, description="Passages in one embedding call, at most.")
    embedding_batch_max_tokens: int = Field(
        default=100_000, ge=100, description="Estimated tokens of one embedding call, at most. OpenAI takes 300,000."
    )
    embedding_input_max_tokens: int = Field(
        default=8_000,
        ge=100,
        description="Estimated tokens of a passage that are embedded; the rest is found by its words alone.",
    )
    embeddings_unused_max_days: float = Field(
        default=30.0,
        gt=0,
        description="How long an embedding is kept that nobody uses; a text is paid for once until then.",
    )
    embeddings_per_tenant_max_bytes: int = Field(
        default=1024**3,
        ge=0,
        description="What one tenant's kept embeddings take; its oldest go first.",
    )
    embedding_threads: int = Field(
        default=1, ge=1, le=64, description="Threads of the model on board: of queries, and of documents."
    )
    embedding_timeout_s: float = Field(default=60.0, gt=0)
    query_embedding_max_s: float = Field(
        default=2.0, gt=0, description="How long a search waits for its query's vector; then words alone answer."
    )
    query_vectors_max_bytes: int = Field(
        default=32 * 1024**2, ge=0, description="Memory for the vectors of the last queries in this process."
    )
    embedding_usd_per_mtok: Decimal | None = Field(
        default=None,
        ge=0,
        description="Dollars per million tokens; 0: it is free. None: what the price list says, or nothing where the "
        "endpoint wants no key.",
    )

    chunk_chars: int = Field(default=1_000, ge=100, le=20_000, description="The most characters of one passage.")
    chunk_tokens: int = Field(
        default=256,
        ge=32,
        le=8_192,
        description="The most tokens of one passage, as the embedder counts them or else by its script: about 1,000 "
        "characters of English, 280 of Chinese. Embedding models cut off what is beyond their limit.",
    )
    document_bytes_max: int = Field(default=32 * 1024 * 1024, ge=1, description="A larger document is refused.")
    pdf_pages_max: int = Field(default=5_000, ge=1)
    read_seconds_max: float = Field(default=120.0, gt=0, description="How long reading one document may take.")
    page_seconds_max: float = Field(default=20.0, gt=0, description="How long reading one page of a PDF may take.")
    read_memory_max_bytes: int = Field(
        default=1024**3,
        ge=256 * 1024**2,
        description="What reading one document may use; each is read in a process of its own that is ended beyond it.",
    )
    ocr_languages: str = Field(
        default="",
        pattern=r"^([A-Za-z0-9_/-]+(\+[A-Za-z0-9_/-]+)*)?$",
        description="Languages in which scanned pages of PDFs are read, by tesseract's names (`eng+deu`), where the "
        "program `tesseract` is on the PATH; within the time of a page and of a document. Empty: scans are refused.",
    )
    metadata_bytes_max: int = Field(default=16 * 1024, ge=0, description="Of one document.")

    fetch_urls: bool = Field(
        default=True, description="Fetch documents from addresses that their senders name, of the public web alone."
    )
    fetch_seconds_max: float = Field(default=30.0, gt=0, description="How long fetching one document may take.")
    fetch_allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts of the inside that documents may be fetched from, as JSON: names, addresses or networks.",
    )
    http_proxy: SecretStr | None = Field(
        default=None, description="The proxy through which documents are fetched, such as http://proxy.example:3128."
    )
    ca_file: Path | None = Field(
        default=None, description="Certificate authorities in PEM that are trusted beside the public ones."
    )

    uploads_per_tenant_max_bytes: int = Field(
        default=2 * 1024**3,
        ge=1,
        description="What one tenant's documents above 256 KiB take on the bus, of 30 days; its next one is a 429.",
    )

    tasks_per_tenant_max: int = Field(
        default=20_000, ge=1_000, description="Tasks that one tenant's jobs planned; of more the oldest are forgotten."
    )
    task_edges_per_tenant_max: int = Field(
        default=100_000, ge=2_000, description="What these need done before them; of more the oldest are forgotten."
    )
    facts_per_tenant_max: int = Field(
        default=1_000_000, ge=1, description="What one tenant's memories and insights may be; the next save is a 429."
    )

    index_slots: int = Field(default=4, ge=1, description="Documents that are indexed at once in this process.")
    search_slots: int = Field(default=16, ge=1, description="Searches that run at once in this process.")
    pool_size: int = Field(default=12, ge=2, description="Connections to Postgres.")
    postgres_wait_s: float = Field(default=30.0, ge=0, description="How long a start waits for Postgres.")

    keyword_candidates: int = Field(
        default=2_000, ge=100, description="About how many passages one query ranks word by word."
    )
    leg_candidates: int = Field(default=100, ge=10, description="The best passages of each leg that fusion sees.")
