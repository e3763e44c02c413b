"""What retrieval does when a tenant's sets of vectors are asked for or changed."""

from __future__ import annotations

from dataclasses import dataclass

from wayline.contracts.errors import Reject
from wayline.contracts.vector_sets import (
    BuildVectors,
    GetVectorSets,
    SwitchVectors,
    UndoVectors,
    VectorSetList,
)
from wayline.retrieval.settings import LEXICAL_MODEL, ON_BOARD_MODEL, Settings
from wayline.retrieval.vector_sets.set_table import VectorSetTable


class UnknownModel(Reject):
    """A model that this installation has not."""

    code = "unknown_embedding_model"
    status = 422


@dataclass(frozen=True, slots=True)
class VectorSetHandlers:
    """One coroutine per message heard."""

    sets: VectorSetTable
    settings: Settings

    async def on_get(self, asked: GetVectorSets) -> VectorSetList:
        """Say which sets there are, and how far each is."""
        models = dict.fromkeys((self.settings.embedding_model, ON_BOARD_MODEL, LEXICAL_MODEL))
        return VectorSetList(sets=await self.sets.sets(asked.tenant), models=tuple(models))

    async def on_build(self, asked: BuildVectors) -> VectorSetList:
        """Begin a set of one of the installation's models, which a person switches to."""
        model = asked.model or self.settings.embedding_model
        if model not in (self.settings.embedding_model, ON_BOARD_MODEL, LEXICAL_MODEL):
            raise UnknownModel(
                f"This installation embeds with {self.settings.embedding_model}, {ON_BOARD_MODEL} and {LEXICAL_MODEL}, "
                f"not with {model!r}: set WAYLINE_RETRIEVAL_EMBEDDING_MODEL."
            )
        dimensions = self.settings.embedding_dimensions if model not in (ON_BOARD_MODEL, LEXICAL_MODEL) else None
        await self.sets.build(asked.tenant, model, dimensions, automatic=asked.switch)
        return await self.on_get(GetVectorSets(tenant=asked.tenant))

    async def on_switch(self, asked: SwitchVectors) -> VectorSetList:
        """Put the set that was built in the live one's place."""
        await self.sets.switch(asked.tenant)
        return await self.on_get(GetVectorSets(tenant=asked.tenant))

    async def on_undo(self, asked: UndoVectors) -> VectorSetList:
        """Put the set before back in the live one's place."""
        await self.sets.switch(asked.tenant, back=True)
        return await self.on_get(GetVectorSets(tenant=asked.tenant))
