"""Keeps the model cards that tenants add to the catalogue."""

from __future__ import annotations

from wayline.contracts.models import DeleteModel, ListModels, ModelCard, ModelDeleted, ModelList, PutModel
from wayline.router.models.tenant_models import Catalogue
from wayline.router.tenants.known_tenants import KnownTenants


class ModelHandlers:
    """Answers requests for models."""

    def __init__(self, catalogue: Catalogue, *, tenants: KnownTenants) -> None:
        self._catalogue = catalogue
        self._tenants = tenants

    async def on_list(self, request: ListModels) -> ModelList:
        """Return every model that the tenant can use."""
        if request.fresh:
            return await self._catalogue.all_now(request.tenant)
        return await self._catalogue.all(request.tenant)

    async def on_put(self, request: PutModel) -> ModelCard:
        """Keep a card of the tenant's own."""
        await self._tenants.require(request.tenant)
        return await self._catalogue.put(request.tenant, request.card)

    async def on_delete(self, request: DeleteModel) -> ModelDeleted:
        """Take a card of the tenant's own back."""
        return ModelDeleted(deleted=await self._catalogue.delete(request.tenant, request.provider, request.model))
