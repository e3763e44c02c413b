"""The HTTP API of Wayline as a library."""

from wayline.client.address import MACHINE_KEY, Address
from wayline.client.client import Client
from wayline.client.documents import change_document, document_path, find_document, reindex_document
from wayline.client.errors import ApiError, NotReachable, NotWayline, WrongVariable
from wayline.client.traces import whole_trace
from wayline.client.uploads import File, Found, Skipped, add_urls, find_files, upload_documents, upload_parts

__all__ = [
    "MACHINE_KEY",
    "Address",
    "ApiError",
    "Client",
    "File",
    "Found",
    "NotReachable",
    "NotWayline",
    "Skipped",
    "WrongVariable",
    "add_urls",
    "change_document",
    "document_path",
    "find_document",
    "find_files",
    "reindex_document",
    "upload_documents",
    "upload_parts",
    "whole_trace",
]
