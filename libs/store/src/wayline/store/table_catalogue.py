"""Queries of Postgres's catalogue: whether every table keeps tenants apart."""

from typing import Any

PROBE_TABLE = "probe_writes"
"""Where probes write: one row, of no meaning, in each schema."""

_GAPS = """
SELECT format('%I.%I', namespace.nspname, class.relname) AS name,
       class.relrowsecurity AS enabled,
       class.relforcerowsecurity AS forced,
       count(policy.oid) AS policies,
       count(policy.oid) FILTER (
           WHERE pg_get_expr(coalesce(policy.polqual, policy.polwithcheck), policy.polrelid) LIKE '%wayline.tenant%'
       ) AS tenant_policies
FROM pg_class AS class
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid
LEFT JOIN pg_policy AS policy ON policy.polrelid = class.oid AND policy.polpermissive
WHERE class.relkind IN ('r', 'p')
  AND attribute.attname = 'tenant' AND NOT attribute.attisdropped
  AND namespace.nspname <> 'information_schema' AND namespace.nspname NOT LIKE 'pg\\_%'
GROUP BY 1, 2, 3
ORDER BY 1
"""


async def rls_gaps(conn: Any) -> list[str]:
    """Return the tables with a `tenant` column that a role could read across tenants, each with what is missing."""
    gaps: list[str] = []
    for row in await conn.fetch(_GAPS):
        if not row["enabled"]:
            gaps.append(f"{row['name']}: row-level security is not enabled")
        elif not row["forced"]:
            gaps.append(f"{row['name']}: row-level security is not forced on the owner")
        elif not row["policies"]:
            gaps.append(f"{row['name']}: there is no policy")
        elif row["tenant_policies"] < row["policies"]:
            gaps.append(f"{row['name']}: a policy does not look at wayline.tenant")
    return gaps
