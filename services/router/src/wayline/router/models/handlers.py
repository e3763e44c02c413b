"""Keeps the model cards that tenants add to the catalogue."""

from __future__ import annotations

from wayline.contracts.errors import NotFound
from wayline.contracts.models import DeleteModel, ListModels, ModelCard, ModelDeleted, ModelList, PutModel
from wayline.router.admission.admission_table import Tables
from wayline.router.models.catalogue import Catalogue


class ModelHandlers:
    """Answers requests for models."""

    def __init__(self, tables: Tables, catalogue: Catalogue) -> None:
        self._tables = tables
        self._catalogue = catalogue

    async def on_list(self, request: ListModels) -> ModelList:
        """Give every model that the tenant can use."""
        return await self._catalogue.all(request.tenant)

    async def on_put(self, request: PutModel) -> ModelCard:
        """Keep a card of the tenant's own."""
        if not await self._tables.is_tenant(request.tenant):
            raise NotFound("tenant", request.tenant)
        return await self._catalogue.put(request.tenant, request.card)

    async def on_delete(self, request: DeleteModel) -> ModelDeleted:
        """Take a card of the tenant's own back."""
        return ModelDeleted(deleted=await self._catalogue.delete(request.tenant, request.provider, request.model))
