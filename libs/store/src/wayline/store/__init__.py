"""Postgres: pool, migrations, named queries, row-level security."""

from wayline.store.batcher import Batcher
from wayline.store.errors import (
    MigrationBlocked,
    MigrationChanged,
    MigrationError,
    MigrationFailed,
    MigrationInvalid,
    MigrationOutOfOrder,
    MigrationUnknown,
    PostgresRefused,
    PostgresTooOld,
    PostgresUnavailable,
    QueriesInvalid,
    RoleTooPowerful,
    SchemaMissing,
    StoreError,
    TenantInvalid,
    UnknownQuery,
    VectorMissing,
)
from wayline.store.migrating import create_login, migrate
from wayline.store.queries import Queries
from wayline.store.store import Connection, Record, Store
from wayline.store.table_catalogue import rls_gaps

__all__ = [
    "Batcher",
    "Connection",
    "MigrationBlocked",
    "MigrationChanged",
    "MigrationError",
    "MigrationFailed",
    "MigrationInvalid",
    "MigrationOutOfOrder",
    "MigrationUnknown",
    "PostgresRefused",
    "PostgresTooOld",
    "PostgresUnavailable",
    "Queries",
    "QueriesInvalid",
    "Record",
    "RoleTooPowerful",
    "SchemaMissing",
    "Store",
    "StoreError",
    "TenantInvalid",
    "UnknownQuery",
    "VectorMissing",
    "create_login",
    "migrate",
    "rls_gaps",
]
